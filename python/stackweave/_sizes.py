"""Numbers as people read them."""

from __future__ import annotations


def size_text(size: float) -> str:
    """12 B, 1.50 KiB, 640 MiB: as the command shows them."""
    sign, size = ("-", -size) if size < 0 else ("", size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1023.5 or unit == "TiB":
            break
        size /= 1024
    places = 0 if unit == "B" or size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{sign}{size:.{places}f} {unit}"


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
