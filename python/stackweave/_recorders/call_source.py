"""Feeds a recorder with the calls of the program."""

from __future__ import annotations

import gc as garbage
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _loaded_modules, _native
from .._native import StateError
from .call_options import optional_flag, patterns_of, tracer_options
from .described_calls import DescribedCalls

if TYPE_CHECKING:
    from .log_records import LogRecords
    from .sources import SourcedRecorder

#: The options, with their defaults.
OPTIONS: dict[str, Any] = {
    "c_calls": False,
    "include": (),
    "exclude": (),
    "min_duration": 0.0,
    "max_depth": None,
    "demote": None,
    "max_events": None,
    "gc": True,
    "tasks": True,
    "arguments": (),
    "native_stacks": (),
    "torch": None,
    "logs": None,
    "mechanism": "auto",
}
#: The options that programs started from here take in the form of the native module.
_CHECKED = ("c_calls", "include", "exclude", "min_duration", "max_depth", "demote", "max_events", "gc", "tasks")


class CallSource:
    """Records every call. A process has at most one: an interpreter reports its calls to one tracer."""

    __slots__ = ("_described", "_logs", "_options", "_tracer", "counted", "for_others")

    one: ClassVar[str] = "one trace"
    outlasts_failures: ClassVar[bool] = False

    def __init__(self, given: dict[str, Any]) -> None:
        chosen = OPTIONS | given
        self._options = tracer_options(chosen)
        arguments_of = patterns_of("arguments", chosen["arguments"])
        stacks_of = patterns_of("native_stacks", chosen["native_stacks"])
        torch, logs = chosen["torch"], chosen["logs"]
        self._described = DescribedCalls(arguments_of, stacks_of, torch=optional_flag("torch", torch) is not False)
        self._logs = _log_records(logs)
        self._tracer: _native.Tracer | None = None
        #: The figures at the end, once it is stopped.
        self.counted: dict[str, Any] | None = None
        unchecked = {"torch": torch, "logs": logs, "arguments": arguments_of, "native_stacks": stacks_of}
        #: The options for programs that are started from here.
        self.for_others = {**unchecked, "mechanism": chosen["mechanism"]} | {
            name: self._options[name] for name in _CHECKED
        }

    def leave_out_callers(self) -> None:
        """Leaves out the frames that are active already, which run the program."""
        self._options["outer"] = False

    def stats(self) -> dict[str, Any]:
        """Returns how calls were recorded, and what was left out: numbers by their names."""
        if self.counted is None:
            raise StateError("the figures of a trace are known when it is stopped")
        return dict(self.counted)

    def prepare(self, recorder: SourcedRecorder) -> None:
        described = {"described": self._described.patterns, "describe": self._described}
        self._tracer = _native.Tracer(recorder, self._options | described)
        if self._options["gc"]:
            garbage.callbacks.append(self._tracer.gc_callback)
        if self._logs is not None:
            self._logs.start(recorder)

    def begin(self) -> None:
        if self._tracer is not None:
            _loaded_modules.with_shared(self._tracer.start)

    def end(self) -> None:
        tracer = self._tracer
        if tracer is None:
            return
        try:
            self.counted = tracer.stop()
        finally:
            self.leave()

    def leave(self) -> None:
        tracer, self._tracer = self._tracer, None
        if tracer is None:
            return
        if self._logs is not None:
            self._logs.stop()
        if tracer.gc_callback in garbage.callbacks:
            garbage.callbacks.remove(tracer.gc_callback)

    def pause(self) -> None:
        if self._tracer is not None:
            self._tracer.pause()

    def resume(self) -> None:
        if self._tracer is not None:
            _loaded_modules.with_shared(self._tracer.resume)

    def forked(self) -> None:
        self._described.forked()
        if self._tracer is not None:
            self._tracer.forked()


def _log_records(logs: object) -> LogRecords | None:
    if logs is None or logs is False:
        return None
    from . import log_records

    chosen = log_records.chosen(logs)
    return None if chosen is None else log_records.LogRecords(*chosen)
