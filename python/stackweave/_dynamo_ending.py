"""What is said at the end of `stackweave dynamo`."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

from ._command_ending import losses, next_steps, others, recorded_in
from ._dynamo_command import ProgramProfile
from ._native import StackweaveError
from ._sizes import count_text, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._recorded_program import Ended
    from .torch.dynamo import Compile

MOST_ERRORS = 3
#: Looked up before the program starts, which may change where modules are found.
_HAS_TORCH = importlib.util.find_spec("torch") is not None


def lines(ended: Ended) -> Iterator[str]:
    """What was compiled, where the recording is, and what is missing there."""
    profile, summary, path = ended.recording, ended.summary, recorded_in(ended)
    assert isinstance(profile, ProgramProfile)
    if summary.error is not None:
        yield f"the recording {path} could not be written: {summary.error}"
    else:
        try:
            yield from _compiled(profile, ended)
        except StackweaveError as error:
            yield f"recorded in {path}, and what was compiled can't be told: {error}"
    yield from _troubles(profile)
    yield from losses(summary)
    yield from others(ended, "phases")


def _compiled(profile: ProgramProfile, ended: Ended) -> Iterator[str]:
    path = recorded_in(ended)
    compiles = profile.compiles()
    if not compiles:
        here = " in this process" if profile._native_options.get("subprocesses") else ""
        yield f"nothing was compiled{here}, so {path} is empty: {_why_nothing()}"
        return
    if profile.is_reported:
        yield f"where the time of compilation went:\n\n{profile.report().rstrip()}\n"
    took = sum(each.duration for each in compiles if each.parent is None)
    said = f"{count_text(len(compiles), 'compilation')} took {duration_text(took)} of {duration_text(ended.seconds)}"
    notes = list(_notes(compiles))
    noted = f" ({', '.join(notes)})" if notes else ""
    size = f"{path} ({size_text(ended.summary.bytes)})"
    yield f"{said}{noted}, recorded in {size}. {next_steps(ended, 'phases', 'report')}"


def _notes(compiles: list[Compile]) -> Iterator[str]:
    again = sum(1 for each in compiles if each.recompile_reason)
    if again:
        yield f"{again:,} of them recompiled"
    failed = sum(1 for each in compiles if each.failed)
    if failed:
        yield f"{failed:,} failed"


def _why_nothing() -> str:
    """As far as can be seen from which modules the program has loaded."""
    if "torch._dynamo" in sys.modules:
        return "no function that torch.compile was given has been called here, or compilation is switched off"
    if "torch" in sys.modules:
        return "the program has not called torch.compile"
    return "the program has not imported torch" if _HAS_TORCH else "this Python has no torch"


def _troubles(profile: ProgramProfile) -> Iterator[str]:
    errors = profile.hook_errors()
    if errors:
        more = f", and {len(errors) - MOST_ERRORS:,} more" if len(errors) > MOST_ERRORS else ""
        yield f"parts of compilations may be missing, hooks failed: {'; '.join(errors[:MOST_ERRORS])}{more}"
    yield from profile.explain_problems()
