"""Tracebacks in the form of the standard library. Imported when one is first shown."""

from __future__ import annotations

import linecache
import sys
from itertools import groupby
from os.path import basename
from traceback import FrameSummary, StackSummary
from typing import TYPE_CHECKING

from ._native import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._native import Frame, Traceback

WIDEST_PLACE = 40
WHOLE = "end of stack"


def summary(traceback: Traceback) -> StackSummary:
    """Returns the frames as `traceback.extract_stack` does, with the native ones."""
    frames = traceback.frames
    for filename in {frame.filename for frame in frames if frame.filename}:
        linecache.checkcache(filename)
    return _summary_of(reversed(frames))


def format(traceback: Traceback) -> list[str]:
    """Returns a string with line ends for each frame, as `traceback.format_list` does."""
    return summary(traceback).format()


def text(traceback: Traceback) -> str:
    """Returns the text of `str`: Python's traceback, with the native frames indented between its entries."""
    frames = traceback.frames
    parts = ["Traceback (most recent call last):\n"]
    if traceback.stop_reason != WHOLE:
        parts.append(f"  (cut here: {traceback.stop_reason})\n")
    rows = {frame: _native_row(frame) for frame in frames if frame.kind == "native"}
    name_width = max((len(row[0]) for row in rows.values()), default=0)
    place_width = max((len(row[1]) for row in rows.values()), default=0)
    for is_native, group in groupby(reversed(frames), key=lambda frame: frame.kind == "native"):
        if is_native:
            for frame in group:
                name, place, module = rows[frame]
                parts.append(f"      | {name:{name_width}}  {place:{place_width}}  {module}".rstrip() + "\n")
        else:
            parts.extend(_summary_of(group).format())
    return "".join(parts).rstrip("\n")


def _summary_of(frames: Iterable[Frame]) -> StackSummary:
    return StackSummary.from_list([_frame_summary(frame) for frame in frames])


def _frame_summary(frame: Frame) -> FrameSummary:
    filename = frame.filename or frame.module or "<unknown>"
    if sys.version_info < (3, 11) or frame.kind != "python":
        return FrameSummary(filename, frame.lineno, frame.name, lookup_line=False)
    return FrameSummary(
        filename,
        frame.lineno,
        frame.name,
        lookup_line=False,
        end_lineno=frame.end_lineno,
        colno=frame.colno,
        end_colno=frame.end_colno,
    )


def _native_row(frame: Frame) -> tuple[str, str, str]:
    place = ""
    if frame.filename:
        place = "/".join(frame.filename.rsplit("/", 2)[-2:])
        if len(place) > WIDEST_PLACE:
            place = "..." + place[3 - WIDEST_PLACE :]
        if frame.lineno:
            place = f"{place}:{frame.lineno}"
    marks = [basename(frame.module)] if frame.module else []
    if frame.inlined:
        marks.append("inlined")
    return shorten(frame.name), place, f"[{', '.join(marks)}]" if marks else ""
