"""The options of a recording, as people write them."""

from __future__ import annotations

import math
import os
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MEMORY = 64 << 20
MOMENTS = ("exit", "exception")
UNITS = {"": 1, "B": 1}
UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
UNITS |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)}


def size_of(name: str, value: object) -> int:
    """Bytes, of a number or a text as "64MB", "1.5 GiB"."""
    if isinstance(value, int) and not isinstance(value, bool):
        bytes_ = int(value)
    elif isinstance(value, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", value)
        unit = UNITS.get(parts[2].upper()) if parts else None
        if parts is None or unit is None:
            raise ValueError(f'{name} must be a size like "64MB" or "1.5 GiB", but is {value!r}')
        bytes_ = int(float(parts[1]) * unit)
    else:
        raise TypeError(f'{name} must be a number of bytes or a size like "64MB", not {type(value).__name__}')
    if not 0 < bytes_ < 1 << 63:
        raise ValueError(f"{name} must be greater than 0 and less than 2**63 bytes, but is {value!r}")
    return bytes_


def seconds_of(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be greater than 0 seconds, but is {value!r}")
    return float(value)


def ring_of(value: object) -> tuple[int | None, float | None] | None:
    """How much of the past is kept: bytes, seconds, or both."""
    if value is None:
        return None
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"ring must be a size, a number of seconds or both as a pair, but is {value!r}")
        return size_of("ring", value[0]), seconds_of("ring", value[1])
    if isinstance(value, str):
        return size_of("ring", value), None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"ring must be a size, a number of seconds or both as a pair, not {type(value).__name__}")
    return None, seconds_of("ring", value)


def moments_of(value: Iterable[str]) -> frozenset[str]:
    moments = frozenset([value] if isinstance(value, str) else value)
    for moment in moments:
        if moment not in MOMENTS:
            raise ValueError(f'dump_on may hold "exit" and "exception", but not {moment!r}')
    return moments


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return value


def native_options(path: str | os.PathLike[str], moments: frozenset[str], given: dict[str, Any]) -> dict[str, Any]:
    """As the native part takes them."""
    if given["when_full"] not in ("block", "drop"):
        raise ValueError(f'when_full must be "block" or "drop", but is {given["when_full"]!r}')
    return {
        "path": os.fsdecode(path),
        "memory": size_of("memory", given["memory"]),
        "drop": given["when_full"] == "drop",
        "ring": ring_of(given["ring"]),
        "dump_at_exit": given["ring"] is not None and "exit" in moments,
        "flush_every": seconds_of("flush_every", given["flush_every"]),
        "follow_forks": flag("follow_forks", given["follow_forks"]),
        "subprocesses": flag("subprocesses", given["subprocesses"]),
        "overwrite": flag("overwrite", given["overwrite"]),
        "python": sys.version.split()[0],
    }
