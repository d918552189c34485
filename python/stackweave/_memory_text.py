"""Memory as tables of text. Imported when one is first shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._memory_usage import seen_frames
from ._sizes import count_text, duration_text, size_text
from ._traceback import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._memory_usage import Usage, UsageRow
    from ._native import Frame

TITLES = {
    "peak": "peak: {size} in {blocks}, {time} after the start",
    "leaks": "not freed: {size} in {blocks}",
    "current": "in use: {size} in {blocks}",
    "temporary": "freed at once: {size} in {blocks}",
    "growth": "grown by {size} in {blocks}",
}
WIDEST = 44


def usage_table(usage: Usage, limit: int, depth: int) -> str:
    title = TITLES[usage.name].format(
        size=size_text(usage.bytes), blocks=count_text(usage.blocks, "block"), time=duration_text(usage.time)
    )
    lines = [title + (" (estimates)" if usage.is_estimate else "")]
    if usage.rows:
        lines.append(f"{'bytes':>10} {'share':>7} {'blocks':>10}  where")
    shown = usage.rows[:limit]
    for row in shown:
        lines.extend(_lines_of(row, usage, depth))
    rest = usage.rows[limit:]
    if rest:
        lines.append(f"{size_text(sum(row.bytes for row in rest)):>10} in {count_text(len(rest), 'more place')}")
    return "\n".join(lines)


def _lines_of(row: UsageRow, usage: Usage, depth: int) -> Iterator[str]:
    share = f"{row.bytes / usage.bytes:.1%}" if usage.bytes else ""
    frames = list(seen_frames(row.stack))
    notes = _notes(row, usage.rows)
    head = f"{size_text(row.bytes):>10} {share:>7} {row.blocks:>10,}  "
    yield head + (_frame_text(frames[0]) if frames else "no stack") + notes
    for frame in frames[1:depth]:
        yield f"{'':31}by {_frame_text(frame)}"
    if len(frames) > depth:
        yield f"{'':31}and {count_text(len(frames) - depth, 'more caller')}"


def _notes(row: UsageRow, rows: Sequence[UsageRow]) -> str:
    """What is not the same for all."""
    notes = [] if row.allocator == "malloc" else [row.allocator]
    if row.tag is not None:
        notes.append(f"tag {row.tag!r}")
    if any(other.thread != rows[0].thread for other in rows):
        notes.append(f"thread {row.thread_name or row.thread}")
    return f"  ({', '.join(notes)})" if notes else ""


def _frame_text(frame: Frame) -> str:
    name = shorten(frame.qualname or frame.name, WIDEST)
    if frame.filename:
        return f"{name}  {_short(frame.filename)}:{frame.line or '?'}"
    return f"{name}  [{frame.module}]" if frame.module else name


def _short(path: str) -> str:
    """As it is called from here, if that is shorter."""
    if not os.path.isabs(path):
        return path
    try:
        here = os.path.relpath(path)
    except OSError:
        return path
    return path if here.startswith("..") else here
