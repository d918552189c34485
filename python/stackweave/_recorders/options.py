"""The options of all recorders, as people write them."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any

from .._sizes import size_of

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The default size of what may wait to be written.
BUFFER = "64MiB"
MOMENTS = ("exit", "exception")


def seconds_of(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be greater than 0 seconds, but is {value!r}")
    return float(value)


def ring_of(value: object) -> tuple[int | None, float | None] | None:
    """Returns how much of the past is kept: bytes, seconds, or both."""
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
    """Returns the options in the form of the native module."""
    if given["when_full"] not in ("block", "drop"):
        raise ValueError(f'when_full must be "block" or "drop", but is {given["when_full"]!r}')
    return {
        "path": os.fsdecode(path),
        "buffer": size_of("buffer", given["buffer"]),
        "drop": given["when_full"] == "drop",
        "ring": ring_of(given["ring"]),
        "dump_at_exit": given["ring"] is not None and "exit" in moments,
        "flush_every": seconds_of("flush_every", given["flush_every"]),
        "follow_forks": flag("follow_forks", given["follow_forks"]),
        "subprocesses": flag("subprocesses", given["subprocesses"]),
        "overwrite": flag("overwrite", given["overwrite"]),
        "python": sys.version.split()[0],
    }
