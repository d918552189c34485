"""Which Python and native code is running here, as one stack, at the price of a function call.

>>> import stackweave
>>> traceback = stackweave.capture()
>>> print(traceback)

A capture writes down where each frame is, and nothing else. Names, lines and inlined calls are looked up when they are
first asked for.

>>> with stackweave.Recording("out.swv") as recording:
...     with recording.span("load"):
...         load()

>>> with stackweave.trace("calls.swv") as trace:
...     main()
>>> trace.stats().sort_stats("cumulative").print_stats(20)

>>> with stackweave.memory("heap.swv") as memory:
...     main()
>>> print(memory.peak())

>>> with stackweave.record("both.swv") as record:
...     main()
>>> record.export("report.html")

>>> with stackweave.Timing("phases.swv") as timing:
...     with timing.frame("plan", "query.sql", 3):
...         plan()

PYTEST_DONT_REWRITE: pytest finds this package loaded where a command runs it, and would warn about that.
"""

try:
    from ._native import (
        CallTree,
        Event,
        ExportError,
        Frame,
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
    from ._live import counter, instant, span
    from ._memory import Memory, allocation_traceback, memory
    from ._memory_devices import DeviceMemory, DeviceMoment, DevicePool, DeviceState, FailedRequest
    from ._memory_tags import memory_tag
    from ._memory_usage import FunctionUsage, Usage, UsageRow
    from ._memory_views import GroupUsage, MemoryTotals, SizeClass
    from ._reading import FunctionCost
    from ._reading_memory import RecordedMemory
    from ._reading_timing import CallerCost, PhaseCost, Run
    from ._record import Record, record
    from ._recording import Recording, Summary, open
    from ._timing import OpenFrame, Timing
    from ._timing_problems import Problems
    from ._trace import Trace, trace

__all__ = [
    "CallTree",
    "CallerCost",
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
    "Memory",
    "MemoryTotals",
    "OpenFrame",
    "Phase",
    "PhaseCost",
    "Problems",
    "Record",
    "RecordedMemory",
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
    "Trace",
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

#: Where that is which not every program needs: it is imported when it is first asked for.
_LATER = {
    "FunctionCost": "_recording",
    "Recording": "_recording",
    "Summary": "_recording",
    "open": "_recording",
    "Trace": "_trace",
    "trace": "_trace",
    "Record": "_record",
    "record": "_record",
    "Memory": "_memory",
    "allocation_traceback": "_memory",
    "memory": "_memory",
    "memory_tag": "_memory_tags",
    "DeviceMemory": "_memory_devices",
    "DeviceMoment": "_memory_devices",
    "DevicePool": "_memory_devices",
    "DeviceState": "_memory_devices",
    "FailedRequest": "_memory_devices",
    "FunctionUsage": "_memory_usage",
    "Usage": "_memory_usage",
    "UsageRow": "_memory_usage",
    "RecordedMemory": "_reading_memory",
    "CallerCost": "_reading_timing",
    "PhaseCost": "_reading_timing",
    "Run": "_reading_timing",
    "GroupUsage": "_memory_views",
    "MemoryTotals": "_memory_views",
    "SizeClass": "_memory_views",
    "OpenFrame": "_timing",
    "Timing": "_timing",
    "Problems": "_timing_problems",
    "get_include": "_include",
    "counter": "_live",
    "instant": "_live",
    "span": "_live",
}


def __getattr__(name: str) -> object:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Without a call of a Python function, which a trace would show, if it is there already.
    value: object = getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name)
    globals()[name] = value
    return value


def load_ipython_extension(ipython: object) -> None:
    """For `%load_ext stackweave`: adds %%trace, %%memory and %%record, which show their reports below the cell."""
    from ._notebook import load

    load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """For `%unload_ext stackweave`."""
    from ._notebook import unload

    unload(ipython)
