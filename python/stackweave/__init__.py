"""Captures the running Python and native code as one stack, at the cost of a function call.

>>> import stackweave
>>> print(stackweave.capture())

A capture records where each frame is, and nothing else. Names, lines and inlined calls are looked up when they are
first used.

A recorder writes a recording, and its property `recording` reads it:

>>> with stackweave.trace("calls.swv") as recorder:
...     main()
>>> recorder.recording.stats().sort_stats("cumulative").print_stats(20)

>>> with stackweave.memory("heap.swv") as recorder:
...     main()
>>> print(recorder.recording.peak())

>>> with stackweave.record("both.swv") as recorder:
...     main()
>>> recorder.recording.export("report.html")

>>> with stackweave.Timing("phases.swv") as timing:
...     with timing.phase("plan", "query.sql", 3):
...         plan()

>>> with stackweave.Recorder("out.swv") as recorder:
...     with recorder.span("load"):
...         load()

PYTEST_DONT_REWRITE: pytest finds this package loaded where a command runs it, and would warn about that.
"""

try:
    from ._native import (
        CallTree,
        Event,
        ExportError,
        Frame,
        Hidden,
        Phase,
        RecordingError,
        Registration,
        Span,
        StackweaveError,
        StartError,
        StateError,
        Traceback,
        UsageTree,
        Watchdog,
        __version__,
        capture,
        current_stack_id,
        dump_threads,
        register_extra_frames,
        register_frame_source,
        resolve_addresses,
        stats,
        symbolize,
        thread_stacks,
        to_json,
        traceback_of,
        watchdog,
    )
except ModuleNotFoundError:
    from ._supported import check

    check()
    raise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._include import get_include
    from ._reading.costs import Costs
    from ._reading.memory import RecordedMemory
    from ._reading.memory_devices import DeviceMemory, DeviceMoment, DevicePool, DeviceState, FailedRequest
    from ._reading.memory_usage import FunctionUsage, Usage, UsageRow
    from ._reading.memory_views import GroupUsage, MemoryTotals, SizeClass
    from ._reading.phases import CallerCost, PhaseCost, Run
    from ._reading.recording import FunctionCost, Recording, open
    from ._recorders.combined import CombinedRecorder, record
    from ._recorders.live_events import counter, instant, span
    from ._recorders.live_memory import LiveMemory
    from ._recorders.memory import MemoryRecorder, allocation_traceback, memory
    from ._recorders.memory_tags import memory_tag
    from ._recorders.recorder import Recorder, Summary
    from ._recorders.timing import OpenPhase, Timing
    from ._recorders.timing_problems import Problems
    from ._recorders.trace import TraceRecorder, trace

__all__ = [
    "CallTree",
    "CallerCost",
    "CombinedRecorder",
    "Costs",
    "DeviceMemory",
    "DeviceMoment",
    "DevicePool",
    "DeviceState",
    "Event",
    "ExportError",
    "FailedRequest",
    "Frame",
    "FunctionCost",
    "FunctionUsage",
    "GroupUsage",
    "Hidden",
    "LiveMemory",
    "MemoryRecorder",
    "MemoryTotals",
    "OpenPhase",
    "Phase",
    "PhaseCost",
    "Problems",
    "RecordedMemory",
    "Recorder",
    "Recording",
    "RecordingError",
    "Registration",
    "Run",
    "SizeClass",
    "Span",
    "StackweaveError",
    "StartError",
    "StateError",
    "Summary",
    "Timing",
    "TraceRecorder",
    "Traceback",
    "Usage",
    "UsageRow",
    "UsageTree",
    "Watchdog",
    "__version__",
    "allocation_traceback",
    "capture",
    "counter",
    "current_stack_id",
    "dump_threads",
    "get_include",
    "instant",
    "memory",
    "memory_tag",
    "open",
    "record",
    "register_extra_frames",
    "register_frame_source",
    "resolve_addresses",
    "span",
    "stats",
    "symbolize",
    "thread_stacks",
    "to_json",
    "trace",
    "traceback_of",
    "watchdog",
]

#: The modules of the names that not every program needs: they are imported when they are first used.
_LATER = {
    "get_include": "_include",
    "Costs": "_reading.costs",
    "RecordedMemory": "_reading.memory",
    "DeviceMemory": "_reading.memory_devices",
    "DeviceMoment": "_reading.memory_devices",
    "DevicePool": "_reading.memory_devices",
    "DeviceState": "_reading.memory_devices",
    "FailedRequest": "_reading.memory_devices",
    "FunctionUsage": "_reading.memory_usage",
    "Usage": "_reading.memory_usage",
    "UsageRow": "_reading.memory_usage",
    "GroupUsage": "_reading.memory_views",
    "MemoryTotals": "_reading.memory_views",
    "SizeClass": "_reading.memory_views",
    "CallerCost": "_reading.phases",
    "PhaseCost": "_reading.phases",
    "Run": "_reading.phases",
    "FunctionCost": "_reading.recording",
    "Recording": "_reading.recording",
    "open": "_reading.recording",
    "CombinedRecorder": "_recorders.combined",
    "record": "_recorders.combined",
    "counter": "_recorders.live_events",
    "instant": "_recorders.live_events",
    "span": "_recorders.live_events",
    "LiveMemory": "_recorders.live_memory",
    "MemoryRecorder": "_recorders.memory",
    "allocation_traceback": "_recorders.memory",
    "memory": "_recorders.memory",
    "memory_tag": "_recorders.memory_tags",
    "Recorder": "_recorders.recorder",
    "Summary": "_recorders.recorder",
    "OpenPhase": "_recorders.timing",
    "Timing": "_recorders.timing",
    "Problems": "_recorders.timing_problems",
    "TraceRecorder": "_recorders.trace",
    "trace": "_recorders.trace",
}


def __getattr__(name: str) -> object:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # If the module is loaded already, this calls no Python function, which a trace would show.
    value: object = getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name)
    globals()[name] = value
    return value


def load_ipython_extension(ipython: object) -> None:
    """Adds %%trace, %%memory and %%record for `%load_ext stackweave`: they show their reports below the cell."""
    from ._integrations.notebook.magics import load

    load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """Removes what load_ipython_extension() added, for `%unload_ext stackweave`."""
    from ._integrations.notebook.magics import unload

    unload(ipython)
