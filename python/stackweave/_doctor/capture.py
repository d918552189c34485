"""Checks whether captures run at full speed: how frames are read, and the cost of a capture."""

from __future__ import annotations

import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from .._native import capture, stats
from .findings import Finding, examine, note, ok, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .findings import Section

DEPTH = 20


def section() -> Section:
    return examine("Capture", (_reader, _cost, _cache))


def _reader() -> Iterator[Finding]:
    python: dict[str, Any] = stats()["python"]
    version = ".".join(map(str, sys.version_info[:2]))
    reader, reason = python["reader"], python["fallback_reason"]
    if reader == "direct":
        yield ok(f"Python frames are read directly, with the layout of {version}", reader=reader)
    else:
        yield problem(
            f"Python frames are not read directly, but by the {reader}: {reason}",
            "captures are slower, and dumps of hanging programs have no Python frames; "
            "use a released CPython 3.10 to 3.15 with the GIL",
            reader=reader,
            fallback_reason=reason,
        )
    if reader == "direct" and python["death_watch"] != "watching":
        yield note(
            "the end of code objects can't be watched: each one that is captured is kept",
            death_watch=python["death_watch"],
        )


def _cost() -> Iterator[Finding]:
    ours = _at_depth(DEPTH, lambda: _seconds_per_call(capture))
    peer = _at_depth(DEPTH, lambda: _seconds_per_call(traceback.extract_stack))
    times = peer / ours
    what = f"a capture at depth {DEPTH} takes {_shown(ours)}; traceback.extract_stack takes {_shown(peer)}"
    values = {"depth": DEPTH, "capture_seconds": ours, "extract_stack_seconds": peer}
    if times >= 5:
        yield ok(f"{what}, {times:.0f} times as long", **values)
    else:
        yield note(
            f"{what}: captures are slower than usual",
            "something slows them down: a profile function, a debugger, or an emulator",
            **values,
        )


def _at_depth(depth: int, call: Callable[[], float]) -> float:
    here, frame = 0, sys._getframe()
    while frame is not None:
        here, frame = here + 1, frame.f_back  # type: ignore[assignment]
    return _descend(max(depth - here - 2, 0), call)


def _descend(levels: int, call: Callable[[], float]) -> float:
    return _descend(levels - 1, call) if levels else call()


def _seconds_per_call(function: Callable[[], object]) -> float:
    """Returns the best of several rounds of about 40 ms."""
    calls = 1
    while (taken := _seconds(function, calls)) < 0.02:
        calls = max(calls * 2, int(calls * 0.04 / max(taken, 1e-6)))
    return min(taken, *(_seconds(function, calls) for _ in range(4))) / calls


def _seconds(function: Callable[[], object], calls: int) -> float:
    """Measures processor time, because other programs run on this machine, too."""
    begin = time.thread_time()
    for _ in range(calls):
        function()
    return time.thread_time() - begin


def _cache() -> Iterator[Finding]:
    """Checks whether knowledge about native code is reused."""
    for _ in range(10):
        capture()
    before = stats()["unwind"]
    for _ in range(1000):
        capture()
    after = stats()["unwind"]
    misses, resets = after["misses"] - before["misses"], after["resets"] - before["resets"]
    values = {"misses": misses, "resets": resets, "unload_watch": after["unload_watch"]}
    if misses == 0 and resets == 0:
        yield ok("repeated captures find everything in the cache", **values)
    else:
        yield problem(
            f"1000 equal captures have missed the cache {misses} times, and it was emptied {resets} times",
            "something loads and unloads libraries all the time",
            **values,
        )
    if after["unload_watch"] == "queries the loader":
        yield note("the loader of this C library must be queried for changes at each capture, which costs time")
    grown = {reason: count - before["stop_reasons"].get(reason, 0) for reason, count in after["stop_reasons"].items()}
    stopped = [reason for reason, count in grown.items() if count > 0 and reason != "end of stack"]
    if stopped:
        yield problem(f"native stacks are not walked to their end here: {', '.join(stopped)}", stop_reasons=stopped)


def _shown(seconds: float) -> str:
    for unit, size in (("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
