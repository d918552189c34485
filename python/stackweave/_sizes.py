"""Numbers as people read them."""

from __future__ import annotations

from ._native import size_text as size_text


def count_text(number: int, noun: str) -> str:
    """1 call, 2,000 calls."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """12 ms, 1.50 s, 2 min 3 s, 1 h 5 min."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"
