"""Memory as tables of text. Imported when one is first shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _native
from .._printable import printable
from .._sizes import count_text, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .memory_usage import Usage, UsageRow

TITLES = {
    "peak": "peak: {size} in {blocks}, {time} after the start",
    "leaks": "not freed: {size} in {blocks}",
    "current": "in use: {size} in {blocks}",
    "temporary": "freed at once: {size} in {blocks}",
}
#: Allocators that are not named.
ORDINARY = ("malloc", "host-allocate", "host-present")


def usage_table(usage: Usage, limit: int, depth: int) -> str:
    title = TITLES[usage.name].format(
        size=size_text(usage.bytes), blocks=count_text(usage.blocks, "block"), time=duration_text(usage.time)
    )
    title += " (estimates)" if usage.is_estimate else ""
    return printable("\n".join([title, *stack_lines(usage.rows, usage.bytes, limit, depth)]))


def stack_lines(rows: tuple[UsageRow, ...], total: int, limit: int, depth: int) -> list[str]:
    """Returns the stacks with most bytes, at most limit of them, with depth frames of each."""
    noted = [(row.stack, row.bytes, row.blocks, notes) for row, notes in zip(rows, _notes(rows), strict=True)]
    return _native.usage_lines(noted, total, limit, depth)


def _notes(rows: tuple[UsageRow, ...]) -> Iterator[str]:
    """Yields the notes of each row: its allocator, tag and thread."""
    has_threads = any(row.thread != rows[0].thread for row in rows)
    for row in rows:
        notes = [] if row.allocator in ORDINARY else [row.allocator]
        if row.tag is not None:
            notes.append(f"tag {row.tag!r}")
        if has_threads:
            notes.append(f"thread {row.thread_name or row.thread}")
        yield f"  ({', '.join(notes)})" if notes else ""
