"""What is said at the end of `stackweave memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._command_ending import losses, next_steps, others, recorded_in
from ._memory import Memory
from ._memory_views import MemoryTotals
from ._native import StackweaveError
from ._recording import FORGOTTEN
from ._sizes import count_text, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._memory_reading import MemoryReading
    from ._memory_source import MemorySource
    from ._recorded_program import Ended


def lines(ended: Ended) -> Iterator[str]:
    """What was used, where the recording is, and what is missing there."""
    memory, summary, path = ended.recording, ended.summary, recorded_in(ended)
    assert isinstance(memory, Memory)
    if summary.error is not None:
        yield f"the recording {path} could not be written: {summary.error}"
    else:
        try:
            yield used(totals_of(memory), memory._is_estimated())
        except StackweaveError as error:
            yield f"what was used can't be told: {error}"
        last = "the last events are " if summary.lost.get(FORGOTTEN) else ""
        size = f"{path} ({size_text(summary.bytes)})"
        yield f"{last}recorded in {size}. {next_steps(ended, 'heap', 'report')}"
    yield from too_small(memory._needed_source())
    yield from losses(summary)
    yield from others(ended, "heap")


def too_small(source: MemorySource) -> Iterator[str]:
    """A sentence for each reason why figures are too small."""
    if (source.counted or {}).get("is_incomplete"):
        yield "there was no memory left to keep all blocks in mind: live figures and the peak are too small"
    foreign = (source.counted or {}).get("foreign_hooks")
    if foreign is not None:
        yield foreign[:1].lower() + foreign[1:].removesuffix(".")


def totals_of(memory: MemoryReading) -> MemoryTotals:
    """The figures of the process's own memory as they were counted; only if there are none, the file is read.

    What is in the file may take as much memory as the program had.
    """
    counted = memory._needed_source().counted or {}
    if not counted.get("allocations") and not counted.get("peak_bytes"):
        return memory.totals()
    return MemoryTotals(*(counted[field] for field in MemoryTotals._fields))


def used(totals: MemoryTotals, is_estimated: bool) -> str:
    """The peak, what is left, and how often memory was taken."""
    about = "about " if is_estimated else ""
    peak = f"peak {about}{size_text(totals.peak_bytes)} after {duration_text(totals.peak_time)}"
    leaks = f"{size_text(totals.live_bytes)} in {count_text(totals.live_blocks, 'block')} not freed at the end"
    return f"{peak}, {leaks}, {count_text(totals.allocations, 'allocation')}"
