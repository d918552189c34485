"""Feeds a recorder with the calls of the program."""

from __future__ import annotations

import gc as garbage
import re
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _loaded_modules, _native
from .._location import FOLDER
from .._native import StateError
from .._options.option import for_native
from .._options.table import OF_CALLS
from .described_calls import DescribedCalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .log_records import LogRecords
    from .sources import SourcedRecorder


class CallSource:
    """Records every call. A process has at most one: an interpreter reports its calls to one tracer."""

    __slots__ = ("_described", "_logs", "_native_options", "_tracer", "counted", "options")

    one: ClassVar[str] = "one trace"
    outlasts_failures: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        #: The checked options, for programs that are started from here too.
        self.options = {option.name: options[option.name] for option in OF_CALLS}
        self._described = DescribedCalls(options["arguments"], options["native_stacks"], torch=options["torch"])
        self._native_options = for_native(OF_CALLS, options) | {
            "own": [_own_files()],
            "outer": True,
            "described": self._described.patterns,
            "describe": self._described,
        }
        self._logs = _log_records(options["logs"])
        self._tracer: _native.Tracer | None = None
        #: The figures at the end, once it is stopped.
        self.counted: dict[str, Any] | None = None

    def leave_out_callers(self) -> None:
        """Leaves out the frames that are active already, which run the program."""
        self._native_options["outer"] = False

    def stats(self) -> dict[str, Any]:
        """Returns how calls were recorded, and what was left out: numbers by their names."""
        if self.counted is None:
            raise StateError("the figures of a trace are known when it is stopped")
        return dict(self.counted)

    def prepare(self, recorder: SourcedRecorder) -> None:
        self._tracer = _native.Tracer(recorder, self._native_options)
        if self.options["gc"]:
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


def _log_records(logs: tuple[str, int] | None) -> LogRecords | None:
    if logs is None:
        return None
    from .log_records import LogRecords

    return LogRecords(*logs)


def _own_files() -> str:
    """Returns a pattern for the files of this package, whose calls are not recorded."""
    return "file:" + re.sub(r"([*?[])", r"[\1]", FOLDER) + "/*"
