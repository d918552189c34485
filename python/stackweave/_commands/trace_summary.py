"""The lines that `stackweave trace` prints at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._recorders.recorder import FORGOTTEN
from .._recorders.trace import TraceRecorder
from .._sizes import count_text, duration_text, size_text
from .summary_lines import losses, next_steps, others, recorded_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .recorded_program import Ended

MOST_NAMES = 3


def lines(ended: Ended) -> Iterator[str]:
    """Yields a line about the recording, and one for each reason why something is missing."""
    recorder, summary, path = ended.recorder, ended.summary, recorded_in(ended)
    assert isinstance(recorder, TraceRecorder)
    stats = recorder._calls.counted or {}
    if summary.error is not None:
        yield f"the recording {path} could not be written: {summary.error}"
    else:
        calls = f"{calls_text(stats)} in {duration_text(ended.seconds)}"
        if summary.lost.get(FORGOTTEN):
            calls = f"the last of {calls}"
        size = f"{path} ({size_text(summary.bytes)})"
        yield f"{calls}, recorded in {size}. {next_steps(ended, 'top', 'report')}"
    yield from left_out(stats)
    yield from losses(summary)
    yield from others(ended, "top")


def calls_text(stats: dict[str, Any]) -> str:
    """Returns a text such as "2,000 calls", or "2,000 calls and 300 calls of C functions"."""
    calls = count_text(stats.get("calls", 0), "call")
    return f"{calls} and {count_text(stats['c_calls'], 'call')} of C functions" if stats.get("c_calls") else calls


def left_out(stats: dict[str, Any]) -> Iterator[str]:
    """Yields a sentence for each reason why calls are missing."""
    if stats.get("hidden"):
        yield f"{count_text(stats['hidden'], 'call')} left out: shorter than --min-duration, or deeper than --max-depth"
    if stats.get("dropped"):
        yield f"{count_text(stats['dropped'], 'more call')} came after --max-events, and were only counted"
    demoted = stats.get("demoted") or []
    if demoted:
        names = [each["name"] for each in demoted[:MOST_NAMES]]
        more = f" and {len(demoted) - MOST_NAMES:,} more" if len(demoted) > MOST_NAMES else ""
        functions = f"{count_text(len(demoted), 'function')} called often for no time, and not traced to the end"
        yield f"{functions} (--demote): {', '.join(names)}{more}"
    if stats.get("stepped_aside"):
        times = count_text(stats["stepped_aside"], "time")
        yield f"deeper calls are missing where the C stack was nearly full: {times}"
    if stats.get("unrecorded_threads"):
        threads = count_text(stats["unrecorded_threads"], "thread")
        yield f"calls are missing on {threads}: the program has set a profile function of its own there"
    if stats.get("taken_out"):
        yield "calls are missing: another tool has taken the evaluation hook out while the program was traced"
    if stats.get("other_interpreters"):
        others = count_text(stats["other_interpreters"], "sub-interpreter")
        yield f"calls are missing in {others}: only those of the main interpreter are recorded"
