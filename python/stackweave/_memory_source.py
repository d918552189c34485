"""The memory of a program as it feeds a recording."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from . import _native
from ._memory_options import SAMPLE_EVERY, recorder_options
from ._memory_threads import ThreadNames
from ._native import StateError

if TYPE_CHECKING:
    from ._sources import SourcedRecording

#: What can be chosen, and what it is if nothing is said.
OPTIONS: dict[str, Any] = {
    "native": True,
    "python_allocators": False,
    "mode": "history",
    "sample_every": SAMPLE_EVERY,
    "free_stacks": False,
    "mappings": True,
    "own_memory": True,
    "depth": None,
    "temporary": 1,
    "curve_every": 0.02,
    "dump_signal": None,
    "dump_at_rss": None,
}
#: Figures of how allocations are seen, which is over when it stops.
_WHILE_ON = ("modules", "slots", "foreign_slots")


class MemorySource:
    """Tells of every allocation. There can be one at a time."""

    __slots__ = ("_follows_forks", "_names", "began", "counted", "options", "recorder")

    one: ClassVar[str] = "one"
    outlasts_failures: ClassVar[bool] = True

    def __init__(self, given: dict[str, Any]) -> None:
        #: As the native part, and programs that are started from here, take them.
        self.options = recorder_options(OPTIONS | given)
        #: From start to stop.
        self.recorder: _native.MemoryRecorder | None = None
        #: When it was started, in the seconds of a clock that never goes back.
        self.began = 0.0
        #: What was counted, once it is stopped.
        self.counted: dict[str, Any] | None = None
        self._names: ThreadNames | None = None
        self._follows_forks = True

    def stats(self) -> dict[str, Any]:
        """How allocations are seen, and what was left out: numbers by their names."""
        if self.recorder is not None:
            return self._stats_of(self.recorder)
        if self.counted is None:
            raise StateError("nothing was recorded yet: call start(), or use it in a with statement")
        return dict(self.counted)

    def _stats_of(self, recorder: _native.MemoryRecorder) -> dict[str, Any]:
        stats = recorder.stats()
        stats["peak_time"] = max(time.monotonic() - self.began - stats.pop("peak_seconds_ago"), 0.0)
        return stats

    def prepare(self, recording: SourcedRecording) -> None:
        self._follows_forks = recording._native_options.get("follow_forks", True)
        self.recorder = _native.MemoryRecorder(recording, self.options)
        self._names = ThreadNames(recording._name_thread)
        self._names.start()
        self.began = time.monotonic()

    def begin(self) -> None:
        if self.recorder is None:
            return
        foreign = self.recorder.start()
        if foreign is not None:
            # A program that makes errors of warnings is recorded all the same.
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(foreign, RuntimeWarning, stacklevel=5)

    def end(self) -> None:
        recorder = self.recorder
        if recorder is None:
            return
        self.recorder = None
        try:
            before = recorder.stats()
            recorder.stop()
            self.counted = self._stats_of(recorder)
            for name in _WHILE_ON:
                self.counted[name] = before[name]
        finally:
            self.leave()

    def leave(self) -> None:
        self.recorder = None
        names, self._names = self._names, None
        if names is not None:
            names.stop()

    def pause(self) -> None:
        if self.recorder is not None:
            self.recorder.pause()

    def resume(self) -> None:
        if self.recorder is not None:
            self.recorder.resume()

    def forked(self) -> None:
        if self.recorder is not None and self._follows_forks:
            self.recorder.forked()
