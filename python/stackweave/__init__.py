"""Which Python and native code is running here, as one stack, at the price of a function call.

>>> import stackweave
>>> traceback = stackweave.capture()
>>> print(traceback)

A capture writes down where each frame is, and nothing else. Names, lines and inlined calls are looked up when they are
first asked for.

>>> with stackweave.Recording("out.swv") as recording:
...     with recording.span("load"):
...         load()
"""

from ._native import (
    CallTree,
    Event,
    Frame,
    Registration,
    Span,
    StackweaveError,
    Traceback,
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._reading import FunctionCost
    from ._recording import Recording, Summary, open

__all__ = [
    "CallTree",
    "Event",
    "Frame",
    "FunctionCost",
    "Recording",
    "Registration",
    "Span",
    "StackweaveError",
    "Summary",
    "Traceback",
    "Watchdog",
    "__version__",
    "capture",
    "current_stack_id",
    "dump_threads",
    "open",
    "register_extra_frames",
    "register_frame_source",
    "resolve_addresses",
    "stats",
    "symbolize",
    "thread_stacks",
    "to_json",
    "traceback_of",
    "watchdog",
]


def __getattr__(name: str) -> object:
    """What not every program needs, imported when it is first asked for."""
    if name in ("FunctionCost", "Recording", "Summary", "open"):
        from . import _recording

        value: object = getattr(_recording, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
