"""What the recorders of memory have in common, and the views of memory while they record."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

from .._native import RecordingError, StackweaveError, StateError
from .._reading.memory_views import MemoryViews
from .._reading.recording import Recording, open_unfinished
from .sources import SourcedRecorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .. import _native
    from .memory_source import MemorySource


class LiveMemory(MemoryViews):
    """The memory of this process at each moment, from a recorder that runs: see MemoryRecorder.live().

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    ...     recorder.live().current().bytes >= 1_000_000
    True
    """

    __slots__ = ("_recorder", "_source")

    def __init__(self, recorder: BaseMemoryRecorder, source: MemorySource) -> None:
        self._recorder = recorder
        self._source = source

    def __repr__(self) -> str:
        return f"<stackweave.LiveMemory of {self._recorder!r}>"

    def _memory_devices(self, rows: bool) -> list[dict[str, Any]]:
        live: list[dict[str, Any]] = self._hooks().snapshot()["devices"]
        now = self._memory_now()
        for device in live:
            totals = device["totals"]
            totals["peak_time"] = max(now - totals["peak_seconds_ago"], 0.0)
        return live

    def _device_histories(self) -> list[dict[str, Any]]:
        self._hooks()
        return self._recorder.recording.memory()._device_histories()

    def _memory_now(self) -> float:
        return time.monotonic() - self._source.began

    def _is_estimated(self) -> bool:
        return self._source.is_estimated

    def _hooks(self) -> _native.AllocationHooks:
        if self._source.hooks is None:
            raise StateError("memory is not recorded now: recorder.recording has what was recorded")
        return self._source.hooks


class BaseMemoryRecorder(SourcedRecorder):
    """Can be read while it records, if it records memory."""

    __slots__ = ("_memory_source",)

    _memory_source: MemorySource | None

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._memory_source = None

    def live(self) -> LiveMemory:
        """Returns the views of the memory at this moment: current(), peak() and others, without reading the file.

        They work while it records; afterwards the property `recording` has the same views.
        """
        memory = LiveMemory(self, self._needed_source())
        memory._hooks()
        return memory

    def dump(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes a snapshot of what is known up to now, and continues. Returns the name of the file.

        Only a ring can be written to another file.
        """
        if self._native_options["ring"] is not None:
            return super().dump(path)
        if path is not None:
            raise StateError("only a ring can be written to another file: other events are in the recording already")
        if self._hooks is not None:
            self._hooks.write_snapshot()
        self.flush()
        return self.path

    def recorder_stats(self) -> dict[str, Any]:
        """Returns how allocations are recorded, and what was left out: numbers by their names."""
        return self._needed_source().stats()

    @property
    def _hooks(self) -> _native.AllocationHooks | None:
        """The hooks, from start to stop."""
        return None if self._memory_source is None else self._memory_source.hooks

    def _needed_source(self) -> MemorySource:
        if self._memory_source is None:
            raise RecordingError("memory was not recorded: record with memory=True")
        return self._memory_source

    def _memory_options(self) -> dict[str, Any] | None:
        return None if self._memory_source is None else self._memory_source.native_options

    def _open_while_recording(self) -> Recording:
        """Writes a snapshot and opens it. A ring is written to a temporary file."""
        if self._memory_source is None:
            return super()._open_while_recording()
        dump: Callable[..., str] = self.dump
        if self._native_options["ring"] is None:
            return open_unfinished(dump(), self.path)
        with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
            # An open file stays readable when its name is gone.
            return open_unfinished(dump(os.path.join(folder, "ring.swv")), self.path)

    def _failed(self, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._memory_source is None:
            super()._failed(kind, error, traceback)
            return
        with contextlib.suppress(MemoryError):
            super()._failed(kind, error, traceback)
            moment = "memory-error" if issubclass(kind, MemoryError) else "exception"
            has_dumped = "exception" in self._dump_on and self._native_options["ring"] is not None
            if self._dump_on & {moment, "exception"} and not has_dumped and self.state == "recording":
                self._dump_known()

    def _dump_known(self) -> None:
        with contextlib.suppress(StackweaveError):
            if self._native_options["ring"] is not None:
                self._dump_quietly()
            else:
                self.dump()


LiveMemory.__module__ = "stackweave"
