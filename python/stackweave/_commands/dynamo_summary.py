"""The lines that `stackweave dynamo` prints at the end."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

from .._native import StackweaveError
from .._sizes import count_text, duration_text, size_text
from ..torch.dynamo import compiles, report
from .dynamo import ProgramDynamoRecorder
from .summary_lines import losses, next_steps, others, recorded_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..torch.dynamo import Compile
    from .recorded_program import Ended

MOST_ERRORS = 3
#: Found before the program starts, which may change where modules are found.
_HAS_TORCH = importlib.util.find_spec("torch") is not None


def lines(ended: Ended) -> Iterator[str]:
    """Yields lines about compilations, where the recording is, and what is missing."""
    recorder, summary, path = ended.recorder, ended.summary, recorded_in(ended)
    assert isinstance(recorder, ProgramDynamoRecorder)
    if summary.error is not None:
        yield f"the recording {path} could not be written: {summary.error}"
    else:
        try:
            yield from _compiled(recorder, ended)
        except StackweaveError as error:
            yield f"recorded in {path}, and what was compiled is not known: {error}"
    yield from _troubles(recorder)
    yield from losses(summary)
    yield from others(ended, "phases")


def _compiled(recorder: ProgramDynamoRecorder, ended: Ended) -> Iterator[str]:
    path = recorded_in(ended)
    rows = compiles(recorder.recording)
    if not rows:
        here = " in this process" if recorder._native_options.get("subprocesses") else ""
        yield f"nothing was compiled{here}, so {path} is empty: {_why_nothing()}"
        return
    if recorder.is_reported:
        tables = report(recorder.recording, errors=recorder.hook_errors())
        yield f"where the time of compilation went:\n\n{tables.rstrip()}\n"
    took = sum(each.duration for each in rows if each.parent is None)
    time = f"{count_text(len(rows), 'compilation')} took {duration_text(took)} of {duration_text(ended.seconds)}"
    notes = list(_notes(rows))
    noted = f" ({', '.join(notes)})" if notes else ""
    size = f"{path} ({size_text(ended.summary.bytes)})"
    yield f"{time}{noted}, recorded in {size}. {next_steps(ended, 'phases', 'report')}"


def _notes(rows: list[Compile]) -> Iterator[str]:
    again = sum(1 for each in rows if each.recompile_reason)
    if again:
        yield f"{again:,} of them recompiled"
    failed = sum(1 for each in rows if each.failed)
    if failed:
        yield f"{failed:,} failed"


def _why_nothing() -> str:
    """Returns why nothing was compiled, judged by the modules that the program has loaded."""
    if "torch._dynamo" in sys.modules:
        return "no function that was passed to torch.compile has been called here, or compilation is switched off"
    if "torch" in sys.modules:
        return "the program has not called torch.compile"
    return "the program has not imported torch" if _HAS_TORCH else "this Python has no torch"


def _troubles(recorder: ProgramDynamoRecorder) -> Iterator[str]:
    errors = recorder.hook_errors()
    if errors:
        more = f", and {len(errors) - MOST_ERRORS:,} more" if len(errors) > MOST_ERRORS else ""
        yield f"parts of compilations may be missing, hooks failed: {'; '.join(errors[:MOST_ERRORS])}{more}"
    yield from recorder.explain_problems()
