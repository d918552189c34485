"""`trace`: a recording of every call. Imported when it is first asked for."""

from __future__ import annotations

import contextlib
import gc as garbage
import os
import threading
from typing import TYPE_CHECKING, Any, Literal

# What a traced program may ask for is there before it does.
from . import _feeding, _live, _native, _subprocess  # noqa: F401
from ._described_calls import DescribedCalls
from ._native import StackweaveError
from ._recording import Recording
from ._trace_options import optional_flag, patterns_of, tracer_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import TypeVar

    from typing_extensions import Self

    from ._log_records import LogRecords

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Duration = float | str

#: The one that is on: an interpreter tells its calls to one of us at a time.
_current: Trace | None = None


class Trace(Recording):
    """Every call of the program, in a recording: from start() to stop(), in a with statement, or as a decorator.

    c_calls records functions that are written in C, too. include and exclude choose functions by parts of names, or
    patterns such as "file:*/models/*.py", "module:json" and "function:Model.*". Calls that take less than min_duration
    (seconds, or a text like "10us") are left out, and those deeper than max_depth. demote stops looking at functions
    that were called often and take no time: True, or a pair of calls and mean duration; their time stays with
    their callers. max_events bounds how much is recorded; the rest is counted. gc records collections of garbage, tasks
    the names of asyncio's tasks. For functions in arguments the values of arguments are recorded, for those in
    native_stacks the native stack. Modules and optimizers of torch are named where torch is loaded, unless torch is
    False. logs records log records: True, the name of a logger, a level, or a pair of both. mechanism is how the
    interpreter tells of calls: "monitoring" (3.12 on), "eval" (3.10, 3.11), "profile", or the best one.

    As a decorator it records from the begin of an outermost call to its end, and pauses in between; several functions
    may have the same one. The other options, and what can be asked of it, are those of Recording.
    """

    __slots__ = (
        "_active",
        "_described",
        "_for_others",
        "_gate",
        "_is_ours",
        "_is_unasked",
        "_logs",
        "_tracer",
        "_tracer_options",
        "_tracer_stats",
    )

    _tracer: _native.Tracer | None
    _tracer_options: dict[str, Any]
    _tracer_stats: dict[str, Any] | None
    _described: DescribedCalls
    _logs: LogRecords | None
    #: How many calls of decorated functions run, and whether recording began with the first of them.
    _active: int
    _is_ours: bool
    _gate: threading.RLock
    #: The options that programs trace by which are started from here.
    _for_others: dict[str, Any]
    #: Whether the program does not know of it.
    _is_unasked: bool

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
        torch: bool | None = None,
        logs: bool | int | str | tuple[str, int | str] | None = None,
        mechanism: Literal["auto", "monitoring", "eval", "profile"] = "auto",
        memory: int | str = "64MiB",
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[Literal["exit", "exception"]] = ("exit", "exception"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        super().__init__(
            path,
            memory=memory,
            when_full=when_full,
            ring=ring,
            dump_on=dump_on,
            flush_every=flush_every,
            follow_forks=follow_forks,
            subprocesses=subprocesses,
            overwrite=overwrite,
        )
        self._tracer_options = tracer_options(
            {
                "c_calls": c_calls,
                "include": include,
                "exclude": exclude,
                "min_duration": min_duration,
                "max_depth": max_depth,
                "demote": demote,
                "max_events": max_events,
                "gc": gc,
                "tasks": tasks,
                "mechanism": mechanism,
            }
        )
        arguments_of = patterns_of("arguments", arguments)
        stacks_of = patterns_of("native_stacks", native_stacks)
        self._described = DescribedCalls(
            arguments_of,
            stacks_of,
            torch=optional_flag("torch", torch) is not False,
        )
        self._logs = _log_records(logs)
        asked = {"torch": torch, "logs": logs, "arguments": arguments_of, "native_stacks": stacks_of}
        chosen = ("c_calls", "include", "exclude", "min_duration", "max_depth", "demote", "max_events", "gc", "tasks")
        self._for_others = {**asked, "mechanism": mechanism} | {name: self._tracer_options[name] for name in chosen}

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._tracer = None
        self._tracer_stats = None
        self._active = 0
        self._is_ours = False
        self._is_unasked = False
        self._gate = threading.RLock()

    @classmethod
    def from_environment(cls, **options: Any) -> Self | None:
        """Traces in a program that a recording one has started, if that said subprocesses=True. None otherwise.

        options are those of trace() that do not say where and how it is written. A program that a trace has started is
        traced anyway, with the options of that: then it is from here on, and with these.
        """
        asked = cls("", **options)
        if _current is not None and _current._is_unasked:
            with _subprocess.unchanged():
                _current._abandon()
        trace = super().from_environment()
        if trace is not None:
            trace._trace_as(asked)
        return trace

    @classmethod
    def _record_subprocess(cls, options: dict[str, Any]) -> None:
        """From the start of a program on, which a traced one has started, and which does not know."""
        trace = super().from_environment()
        if trace is not None:
            trace._is_unasked = True
            asked = cls("", **options)
            asked._tracer_options["outer"] = False
            trace._trace_as(asked)

    def _trace_as(self, asked: Trace) -> None:
        self._tracer_options, self._described, self._logs = asked._tracer_options, asked._described, asked._logs
        self._for_others = asked._for_others
        self._begin_tracing()

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        return "trace", self._for_others

    def start(self) -> Self:
        """Begins to record."""
        if self.state == "new" and _current is not None:
            raise StackweaveError(f"{_current!r} is on, and there can be one trace at a time: stop it first")
        super().start()
        try:
            self._begin_tracing()
        except BaseException:
            self._abandon()
            raise
        return self

    def pause(self) -> None:
        """Leaves out what happens from now on, until resume()."""
        if self.state == "recording" and self._tracer is not None:
            self._tracer.pause()
        super().pause()

    def resume(self) -> None:
        """Records again, after pause()."""
        was_paused = self.state == "paused"
        super().resume()
        if was_paused and self._tracer is not None:
            self._tracer.resume()

    def tracer_stats(self) -> dict[str, Any]:
        """How the calls of a trace that is stopped were seen, and what was left out: numbers by their names."""
        if self._tracer_stats is None:
            raise StackweaveError("a trace can tell what was left out when it is stopped")
        return dict(self._tracer_stats)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self._end_source()
        super().__exit__(kind, error, traceback)

    def __call__(self, function: _Function, /) -> _Function:
        decorated: Any = _feeding.decorate(_DuringCalls(self), "trace")(function)
        return decorated  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<stackweave.Trace {self.path!r}, {self.state}>"

    def _begin_tracing(self) -> None:
        """The last thing that is done is to start, so that nothing of ours is in the trace."""
        global _current
        options = {
            **self._tracer_options,
            "described": self._described.patterns,
            "describe": self._described,
        }
        self._tracer = _native.Tracer(self, options)
        _current = self
        if options["gc"]:
            garbage.callbacks.append(self._tracer.gc_callback)
        if self._logs is not None:
            self._logs.start(self)
        self._tracer.start()

    def _end_source(self) -> None:
        """The first thing that is done is to stop."""
        tracer, self._tracer = self._tracer, None
        if tracer is None:
            return
        try:
            self._tracer_stats = tracer.stop()
        finally:
            self._leave(tracer)

    def _leave(self, tracer: _native.Tracer) -> None:
        global _current
        if _current is self:
            _current = None
        if self._logs is not None:
            self._logs.stop()
        with contextlib.suppress(ValueError):
            garbage.callbacks.remove(tracer.gc_callback)

    def _abandon(self) -> None:
        """It could not begin: no empty file is left."""
        if self._tracer is not None:
            self._leave(self._tracer)
            self._tracer = None
        self._discard()

    def _forked(self) -> None:
        super()._forked()
        self._gate = threading.RLock()
        self._described.forked()
        if self._tracer is not None:
            self._tracer.forked()

    def _call_begins(self) -> None:
        with self._gate:
            if self._active == 0:
                was = self.state
                self._is_ours = was in ("new", "paused")
                if was == "new":
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

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        self._trace._call_begins()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self._trace._call_ends()


def _log_records(logs: object) -> LogRecords | None:
    if logs is None or logs is False:
        return None
    from . import _log_records

    chosen = _log_records.chosen(logs)
    return None if chosen is None else _log_records.LogRecords(*chosen)


Trace.__module__ = "stackweave"
trace = Trace
