"""What is said at the end of `stackweave run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._command_ending import losses, next_steps, others, recorded_in
from ._memory_ending import too_small, totals_of, used
from ._native import StackweaveError
from ._record import Record
from ._recording import FORGOTTEN
from ._sizes import duration_text, size_text
from ._trace_ending import calls_text, left_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._recorded_program import Ended


def lines(ended: Ended) -> Iterator[str]:
    """What was called and used, where the recording is, and what is missing there."""
    record, summary, path = ended.recording, ended.summary, recorded_in(ended)
    assert isinstance(record, Record)
    if summary.error is not None:
        yield f"the recording {path} could not be written: {summary.error}"
    else:
        yield from _recorded(record, ended)
        last = "the last events are " if summary.lost.get(FORGOTTEN) else ""
        yield f"{last}recorded in {path} ({size_text(summary.bytes)}). {next_steps(ended, 'report')}"
    if record._call_source is not None:
        yield from left_out(record._call_source.counted or {})
    if record._memory_source is not None:
        yield from too_small(record._memory_source)
    yield from losses(summary)
    yield from others(ended, "report")


def _recorded(record: Record, ended: Ended) -> Iterator[str]:
    """Calls and time, and a line about memory."""
    if record._call_source is not None:
        calls = calls_text(record._call_source.counted or {})
        yield f"{calls} in {duration_text(ended.seconds)}"
    if record._memory_source is not None:
        try:
            yield used(totals_of(record), record._is_estimated())
        except StackweaveError as error:
            yield f"what was used can't be told: {error}"
