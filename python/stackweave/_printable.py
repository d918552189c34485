"""Untrusted text on a terminal: names, paths and messages of a recording."""

from __future__ import annotations

#: Control characters with C1, ends of lines other than "\\n", and marks that change the direction of writing.
_CONTROL = [
    *range(0x0A),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0x200E,
    0x200F,
    0x2028,
    0x2029,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
_REPLACED = dict.fromkeys(_CONTROL, "\N{REPLACEMENT CHARACTER}")


def printable(text: str) -> str:
    """Replaces the characters that control a terminal. Ends of lines stay."""
    return text.translate(_REPLACED)
