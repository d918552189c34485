"""Which Python and native code is running here, as one stack, at the price of a function call.

>>> import stackweave
>>> traceback = stackweave.capture()
>>> print(traceback)

A capture writes down where each frame is, and nothing else. Names, lines and inlined calls are looked up when they are
first asked for.
"""

from ._native import (
    Frame,
    Registration,
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

__all__ = [
    "Frame",
    "Registration",
    "StackweaveError",
    "Traceback",
    "Watchdog",
    "__version__",
    "capture",
    "current_stack_id",
    "dump_threads",
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
