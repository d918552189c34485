"""Text of others that goes to a terminal: names, paths and messages, which may come from a recording of anybody."""

from __future__ import annotations

#: Control characters, C1 included, ends of lines but for the plain one, and what turns the direction of writing.
_OBEYED = [
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
_REPLACED = dict.fromkeys(_OBEYED, "\N{REPLACEMENT CHARACTER}")


def printable(text: str) -> str:
    """Returns the text without what a terminal would obey. Ends of lines stay."""
    return text.translate(_REPLACED)
