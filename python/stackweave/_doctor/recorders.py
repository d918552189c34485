"""Checks whether calls and memory can be recorded, and measures the cost."""

from __future__ import annotations

import contextlib
import cProfile
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from .findings import Finding, examine, note, ok, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .findings import Section

CALLS = 50_000
#: The program whose calls are recorded. Calls in this package are never recorded.
PROGRAM = """
def nothing():
    pass
def call(calls):
    for _ in range(calls):
        nothing()
"""
#: The best mechanism for recording calls, by version.
BEST = "monitoring" if sys.version_info >= (3, 12) else "eval"


def section() -> Section:
    return examine("Recorders", (_calls, _memory))


def _calls() -> Iterator[Finding]:
    from .. import open as open_recording
    from .._recorders.trace import TraceRecorder

    with tempfile.TemporaryDirectory(prefix="stackweave-doctor-") as folder:
        path = os.path.join(folder, "calls.swv")
        trace = TraceRecorder(path)
        plain = _best(contextlib.nullcontext())
        with trace:
            traced = _best(contextlib.nullcontext())
        profiled = _best(_Profiled())
        tracer = trace.tracer_stats()
        clock = open_recording(path).info()["processes"][0]["clock"]
    ours, peer = ((seconds - plain) / CALLS for seconds in (traced, profiled))
    mechanism, reason = tracer["mechanism"], tracer["fallback_reason"]
    what = f"calls are reported by {mechanism}: {ours * 1e9:.0f} ns a call; cProfile takes {peer * 1e9:.0f} ns"
    values = {"mechanism": mechanism, "call_seconds": ours, "cprofile_seconds": peer}
    if mechanism == BEST:
        yield ok(what, **values)
    else:
        yield note(f"{what}: {BEST} would cost less, but {reason}", fallback_reason=reason, **values)
    yield from _clock(clock["source"])


def _clock(source: str) -> Iterator[Finding]:
    if source == "tsc":
        yield ok("times are read from the processor's counter (TSC), the cheapest clock", clock=source)
    else:
        yield note(
            f"times are read from the system's clock ({source}), which costs more: the TSC is not trusted here",
            "virtual machines often hide it: request an invariant TSC",
            clock=source,
        )


class _Profiled:
    """cProfile as a context manager, on each version."""

    def __enter__(self) -> None:
        self._profile = cProfile.Profile()
        self._profile.enable()

    def __exit__(self, *_error: object) -> None:
        self._profile.disable()


def _best(around: contextlib.AbstractContextManager[object]) -> float:
    program: dict[str, Any] = {"__name__": "doctor"}
    exec(compile(PROGRAM, "<doctor>", "exec"), program)
    return min(_round(around, program["call"]) for _ in range(3))


def _round(around: contextlib.AbstractContextManager[object], call: Callable[[int], None]) -> float:
    with around:
        begin = time.thread_time()
        call(CALLS)
        return time.thread_time() - begin


def _memory() -> Iterator[Finding]:
    from .._recorders.memory import MemoryRecorder

    with tempfile.TemporaryDirectory(prefix="stackweave-doctor-") as folder:
        memory = MemoryRecorder(os.path.join(folder, "memory.swv"))
        with memory:
            kept = [bytearray(1000) for _ in range(1000)]
        recorder = memory.recorder_stats()
    modules, foreign = recorder["modules"], recorder["foreign_slots"]
    values = {"modules": modules, "slots": recorder["slots"], "foreign_slots": foreign}
    if recorder["allocations"] >= len(kept):
        yield ok(f"memory can be recorded: allocation functions are hooked in {modules} modules", **values)
    else:
        yield problem(
            f"the memory recorder has seen only {recorder['allocations']} of {len(kept)} blocks",
            "another tool may have taken the allocation functions: see below",
            **values,
        )
    if foreign:
        yield note(f"{foreign} calls of allocation functions belong to another tool, and are left to it")
