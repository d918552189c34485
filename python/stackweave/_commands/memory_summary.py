"""The lines that `stackweave memory` prints at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._native import StackweaveError
from .._reading.memory_views import MemoryTotals
from .._recorders.memory import MemoryRecorder
from .._recorders.recorder import FORGOTTEN
from .._sizes import count_text, duration_text, size_text
from .summary_lines import losses, next_steps, others, recorded_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._recorders.live_memory import BaseMemoryRecorder
    from .._recorders.memory_source import MemorySource
    from .recorded_program import Ended


def lines(ended: Ended) -> Iterator[str]:
    """Yields lines about the use of memory, where the recording is, and what is missing."""
    recorder, summary, path = ended.recorder, ended.summary, recorded_in(ended)
    assert isinstance(recorder, MemoryRecorder)
    if summary.error is not None:
        yield f"the recording {path} could not be written: {summary.error}"
    else:
        try:
            yield used(totals_of(recorder), recorder._needed_source().is_estimated)
        except StackweaveError as error:
            yield f"the use of memory is not known: {error}"
        last = "the last events are " if summary.lost.get(FORGOTTEN) else ""
        size = f"{path} ({size_text(summary.bytes)})"
        yield f"{last}recorded in {size}. {next_steps(ended, 'heap', 'report')}"
    yield from too_small(recorder._needed_source())
    yield from losses(summary)
    yield from others(ended, "heap")


def too_small(source: MemorySource) -> Iterator[str]:
    """Yields a sentence for each reason why figures are too small."""
    if (source.counted or {}).get("is_incomplete"):
        yield "there was no memory left to remember all blocks: live figures and the peak are too small"
    foreign = (source.counted or {}).get("foreign_hooks")
    if foreign is not None:
        yield foreign[:1].lower() + foreign[1:].removesuffix(".")


def totals_of(recorder: BaseMemoryRecorder) -> MemoryTotals:
    """Returns the figures of the process's own memory as the recorder has them. If it has none, the file is read.

    Reading the file may need as much memory as the program did.
    """
    counted = recorder._needed_source().counted or {}
    if not counted.get("allocations") and not counted.get("peak_bytes"):
        return recorder.recording.memory().totals()
    return MemoryTotals(*(counted[field] for field in MemoryTotals._fields))


def used(totals: MemoryTotals, is_estimated: bool) -> str:
    """Returns a text with the peak, what was not freed, and the number of allocations."""
    about = "about " if is_estimated else ""
    peak = f"peak {about}{size_text(totals.peak_bytes)} after {duration_text(totals.peak_time)}"
    leaks = f"{size_text(totals.live_bytes)} in {count_text(totals.live_blocks, 'block')} not freed at the end"
    return f"{peak}, {leaks}, {count_text(totals.allocations, 'allocation')}"
