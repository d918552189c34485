"""Memory as tables of text. Imported when one is first shown."""

from __future__ import annotations

import os
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ._memory_usage import seen_frames
from ._printable import printable
from ._sizes import count_text, duration_text, size_text
from ._traceback import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._memory_usage import Usage, UsageRow
    from ._native import Frame

TITLES = {
    "peak": "peak: {size} in {blocks}, {time} after the start",
    "leaks": "not freed: {size} in {blocks}",
    "current": "in use: {size} in {blocks}",
    "temporary": "freed at once: {size} in {blocks}",
}
#: Allocators that go without saying.
ORDINARY = ("malloc", "host-allocate", "host-present")
WIDEST_NAME = 44
INDENT = " " * 31


class _Place(NamedTuple):
    """What is shown of where memory was taken: rows that look the same are one."""

    frames: tuple[str, ...]
    notes: str


def usage_table(usage: Usage, limit: int, depth: int) -> str:
    title = TITLES[usage.name].format(
        size=size_text(usage.bytes), blocks=count_text(usage.blocks, "block"), time=duration_text(usage.time)
    )
    title += " (estimates)" if usage.is_estimate else ""
    return printable("\n".join([title, *stack_lines(usage.rows, usage.bytes, limit, depth)]))


def stack_lines(rows: tuple[UsageRow, ...], total: int, limit: int, depth: int) -> Iterator[str]:
    """The places that took most, with so many frames of each."""
    places: dict[_Place, list[int]] = {}
    for row, place in zip(rows, _places(rows), strict=True):
        sums = places.setdefault(place, [0, 0])
        sums[0] += row.bytes
        sums[1] += row.blocks
    ordered = sorted(places.items(), key=lambda item: item[1], reverse=True)
    if ordered:
        yield f"{'bytes':>10} {'share':>7} {'blocks':>10}  where"
    for place, (bytes_, blocks) in ordered[:limit]:
        share = f"{bytes_ / total:.1%}" if total else ""
        first, *callers = place.frames or ("no stack",)
        yield f"{size_text(bytes_):>10} {share:>7} {blocks:>10,}  {first}{place.notes}"
        for caller in callers[: depth - 1]:
            yield f"{INDENT}by {caller}"
        if len(callers) >= depth:
            yield f"{INDENT}and {count_text(len(callers) + 1 - depth, 'more caller')}"
    rest = ordered[limit:]
    if rest:
        yield f"{size_text(sum(sums[0] for _, sums in rest)):>10} in {count_text(len(rest), 'more place')}"


def _places(rows: tuple[UsageRow, ...]) -> Iterator[_Place]:
    has_threads = any(row.thread != rows[0].thread for row in rows)
    for row in rows:
        notes = [] if row.allocator in ORDINARY else [row.allocator]
        if row.tag is not None:
            notes.append(f"tag {row.tag!r}")
        if has_threads:
            notes.append(f"thread {row.thread_name or row.thread}")
        frames = tuple(frame_text(frame) for frame in without_insides(seen_frames(row.stack)))
        yield _Place(frames, f"  ({', '.join(notes)})" if notes else "")


#: A call that goes through more native modules is shown by where it enters the first.
MOST_MODULES = 4


def without_insides(stack: Iterable[Frame]) -> Iterator[Frame]:
    """Of what a native module does inside only where it was entered, and of the innermost also who took the memory."""
    is_innermost = True
    for is_native, group in groupby(stack, key=lambda frame: frame.kind == "native"):
        frames = list(group)
        modules = [list(inside) for _, inside in groupby(frames, key=lambda frame: frame.module)]
        if not is_native:
            yield from frames
        elif len(modules) > MOST_MODULES:
            yield frames[-1]
        else:
            if is_innermost and len(modules[0]) > 1:
                yield frames[0]
            yield from (inside[-1] for inside in modules)
        is_innermost = False


def frame_text(frame: Frame) -> str:
    name = shorten(frame.qualname or frame.name, WIDEST_NAME)
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
