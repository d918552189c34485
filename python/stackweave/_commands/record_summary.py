"""The lines that `stackweave record` prints at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._native import StackweaveError
from .._recorders.combined import CombinedRecorder
from .._recorders.recorder import FORGOTTEN
from .._sizes import duration_text, size_text
from .memory_summary import too_small, totals_of, used
from .summary_lines import losses, next_steps, others, recorded_in
from .trace_summary import calls_text, left_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .recorded_program import Ended


def lines(ended: Ended) -> Iterator[str]:
    """Yields lines about calls and memory, where the recording is, and what is missing."""
    recorder, summary, path = ended.recorder, ended.summary, recorded_in(ended)
    assert isinstance(recorder, CombinedRecorder)
    if summary.error is not None:
        yield f"the recording {path} could not be written: {summary.error}"
    else:
        yield from _recorded(recorder, ended)
        last = "the last events are " if summary.lost.get(FORGOTTEN) else ""
        yield f"{last}recorded in {path} ({size_text(summary.bytes)}). {next_steps(ended, 'report')}"
    if recorder._call_source is not None:
        yield from left_out(recorder._call_source.counted or {})
    if recorder._memory_source is not None:
        yield from too_small(recorder._memory_source)
    yield from losses(summary)
    yield from others(ended, "report")


def _recorded(recorder: CombinedRecorder, ended: Ended) -> Iterator[str]:
    """Yields a line about calls and time, and one about memory."""
    if recorder._call_source is not None:
        calls = calls_text(recorder._call_source.counted or {})
        yield f"{calls} in {duration_text(ended.seconds)}"
    if recorder._memory_source is not None:
        try:
            yield used(totals_of(recorder), recorder._memory_source.is_estimated)
        except StackweaveError as error:
            yield f"the use of memory is not known: {error}"
