"""The findings of the doctor as text."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

from .._printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .findings import Finding, Section

COLOURS = {"ok": "32", "note": "33", "problem": "1;31"}
INDENT = " " * 11
WIDEST = 110


def lines(heading: str, sections: Iterable[Section], summary: str, *, colour: bool) -> Iterator[str]:
    width = min(shutil.get_terminal_size((WIDEST, 0)).columns, WIDEST)
    yield printable(heading)
    for section in sections:
        if section.findings:
            yield ""
            yield _coloured(section.title, "1", colour)
        for finding in section.findings:
            yield from _finding(finding, width, colour)
    yield ""
    yield summary


def _finding(finding: Finding, width: int, colour: bool) -> Iterator[str]:
    word = _coloured(finding.state, COLOURS[finding.state], colour)
    first, *rest = _wrapped(finding.what, width)
    yield f"  {word}{' ' * (len(INDENT) - 2 - len(finding.state))}{first}"
    yield from (INDENT + line for line in rest)
    if finding.remedy:
        first, *rest = _wrapped(finding.remedy, width - 3)
        yield f"{INDENT}-> {first}"
        yield from (f"{INDENT}   {line}" for line in rest)


def _wrapped(text: str, width: int) -> list[str]:
    """Wraps a line at spaces. Words, and so commands, are never cut."""
    room = max(width - len(INDENT), 40)
    return textwrap.wrap(printable(text), room, break_long_words=False, break_on_hyphens=False) or [""]


def _coloured(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def wants_colour() -> bool:
    """Returns whether to use colours: on terminals unless NO_COLOR is set, and anywhere with CLICOLOR_FORCE."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
