"""`trace`: records every call. Imported when it is first used."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Literal

from .._options.table import TRACE

# Imports the modules that a traced program may call before it is traced.
from . import live_events, native_callbacks  # noqa: F401
from .call_source import CallSource
from .sources import SourcedRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import TypeVar

    from .sources import _IfBusy

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Duration = float | str


class TraceRecorder(SourcedRecorder):
    """Records every call of the program: from start() to stop(), in a with statement, or as a decorator.

    >>> with stackweave.trace("calls.swv") as recorder:
    ...     main()
    >>> [cost.name for cost in recorder.recording.top() if cost.name == "main"]
    ['main']

    c_calls=True records functions that are written in C, too. include and exclude select functions by parts of names,
    or patterns such as "file:*/models/*.py", "module:json" and "function:Model.*". Calls that take less than
    min_duration (seconds, or a text like "10us") are left out, and those deeper than max_depth. demote stops tracing
    functions that were called often and take no time: True, or a pair of calls and mean duration; their time counts for
    their callers. max_events limits how much is recorded; the rest is counted. gc records garbage collections, tasks
    the names of asyncio's tasks. For functions in arguments the values of arguments are recorded, for those in
    native_stacks the native stack. Modules and optimizers of torch are named where torch is loaded, unless torch is
    False. logs records log records: True, the name of a logger, a level, or a pair of both. mechanism is how the
    interpreter reports calls: "monitoring" (from 3.12), "eval" (3.10, 3.11), "profile", or by default the best one.

    As a decorator it records from the start of an outermost call to its end, and pauses in between; several functions
    may have the same one. if_busy is what start() does while another recorder traces: "raise" an error, or "skip" this
    one, which then records nothing and has the state "skipped". Other options: see Recorder.
    """

    __slots__ = ("_active", "_calls", "_gate", "_is_ours")

    _calls: CallSource
    #: The number of running calls of decorated functions.
    _active: int
    #: Whether the first of them started or resumed the recording.
    _is_ours: bool
    _gate: threading.RLock
    _shown_as = "TraceRecorder"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        c_calls: bool = False,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        min_duration: _Duration = 0.0,
        max_depth: int | None = None,
        demote: bool | tuple[int, _Duration] | None = None,
        max_events: int | None = None,
        gc: bool = True,
        tasks: bool = True,
        arguments: Iterable[str] = (),
        native_stacks: Iterable[str] = (),
        torch: bool = True,
        logs: bool | int | str | tuple[str, int | str] | None = None,
        mechanism: Literal["auto", "monitoring", "eval", "profile"] = "auto",
        buffer: int | str = "64MiB",
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[Literal["exit", "exception"]] = ("exit", "exception"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
        if_busy: _IfBusy = "raise",
    ) -> None:
        self._calls = CallSource(self._take(path, TRACE, locals()))
        self._sources = (self._calls,)

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._active = 0
        self._is_ours = False
        self._gate = threading.RLock()

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        return "trace", self._calls.options

    def _leave_out_callers(self) -> None:
        self._calls.leave_out_callers()

    def tracer_stats(self) -> dict[str, Any]:
        """Returns how calls were recorded, and what was left out, once it is stopped: numbers by their names."""
        return self._calls.stats()

    def __call__(self, function: _Function, /) -> _Function:
        decorated: Any = native_callbacks.decorate(_DuringCalls(self), "trace")(function)
        return decorated  # type: ignore[no-any-return]

    def _forked(self) -> None:
        self._gate = threading.RLock()  # before calls are recorded again
        super()._forked()

    def _call_begins(self) -> None:
        with self._gate:
            if self._active == 0:
                was = self.state
                self._is_ours = was in ("new", "paused", "skipped")
                if was in ("new", "skipped"):
                    self.start()
                elif was == "paused":
                    self.resume()
            self._active += 1

    def _call_ends(self) -> None:
        with self._gate:
            self._active -= 1
            if self._active == 0 and self._is_ours and self.state == "recording":
                self.pause()


class _DuringCalls:
    """Records while any call of a decorated function runs."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: TraceRecorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        self._recorder._call_begins()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self._recorder._call_ends()


TraceRecorder.__module__ = "stackweave"
trace = TraceRecorder
