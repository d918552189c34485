"""Sizes, numbers and durations as people write and read them."""

from __future__ import annotations

import re

from ._native import size_text as size_text

UNITS = {"": 1, "B": 1}
UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
UNITS |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)}


def count_text(number: int, noun: str) -> str:
    """Returns a text such as "1 call" or "2,000 calls"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """Returns a text such as "12 ms", "1.50 s", "2 min 3 s" or "1 h 5 min"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def size_of(name: str, value: object) -> int:
    """Returns the bytes of a number, or of a text such as "64MB" or "1.5 GiB"."""
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
