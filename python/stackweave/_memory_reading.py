"""The part of a memory recording that reads: from what is kept while it runs, and from the file when it is over."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from . import _native
from ._memory_views import MemoryViews
from ._native import RecordingError, StackweaveError, StateError
from ._sources import SourcedRecording

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ._memory_source import MemorySource

#: All of a recording.
EVERYTHING = {"process": None, "thread": None, "start": None, "end": None}
EVERY_BLOCK = {"tag": None, "device": None, "temporary": None}


class MemoryReading(MemoryViews, SourcedRecording):
    """Can be read while it records, if it records memory."""

    __slots__ = ("_memory_source",)

    _memory_source: MemorySource | None

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._memory_source = None

    @property
    def _recorder(self) -> _native.MemoryRecorder | None:
        """From start to stop."""
        return None if self._memory_source is None else self._memory_source.recorder

    def dump(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes what is known up to now, to be read whatever happens next, and goes on. Gives the file's name.

        A ring can be written to another file.
        """
        if self._native_options["ring"] is not None:
            return super().dump(path)
        if path is not None:
            raise StateError("only a ring can be written to another file: all else is in the recording already")
        if self._recorder is not None:
            self._recorder.write_snapshot()
        self.flush()
        return self.path

    def recorder_stats(self) -> dict[str, Any]:
        """How allocations are seen, and what was left out: numbers by their names."""
        return self._needed_source().stats()

    def timeline(self) -> list[tuple[float, int | None, int | None]]:
        """The size of the process, and of all that is in use, over time.

        Seconds since the recording began, and two numbers of bytes, which may be None where they are not known.
        """
        self._needed_source()
        return self._files().memory_timeline(EVERYTHING)

    def to_arrow(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> Any:
        """The history as a table of pyarrow, one row for each allocation.

        Columns are time and freed_at (in seconds; no value if it was not freed), address, size, allocator, process,
        thread, device, tag and stack: a row of memory().stacks_to_arrow(), for the same part of the recording.
        """
        from ._memory_history import table_of

        selection = {"process": process, "thread": thread, "start": start, "end": end}
        return table_of(self._files(), selection, EVERY_BLOCK)

    def _memory_devices(self, rows: bool) -> list[dict[str, Any]]:
        recorder = self._needed_source().recorder
        if recorder is None:
            query = {**EVERY_BLOCK, "rows": rows}
            read: list[dict[str, Any]] = self._files().memory(EVERYTHING, query)["devices"]
            return read
        live: list[dict[str, Any]] = recorder.snapshot()["devices"]
        now = self._memory_now()
        for device in live:
            totals = device["totals"]
            totals["peak_time"] = max(now - totals["peak_seconds_ago"], 0.0)
        return live

    def _device_histories(self) -> list[dict[str, Any]]:
        self._needed_source()
        return self._files().memory_devices(EVERYTHING)

    def _memory_now(self) -> float:
        source = self._needed_source()
        if source.recorder is not None:
            return time.monotonic() - source.began
        return float(self._files().info()["processes"][0]["duration"])

    def _is_estimated(self) -> bool:
        return bool(self._needed_source().options["mode"] == "sampled")

    def _needed_source(self) -> MemorySource:
        if self._memory_source is None:
            raise RecordingError("memory was not recorded here: say memory=True")
        return self._memory_source

    def _memory_recorder(self) -> dict[str, Any] | None:
        return None if self._memory_source is None else self._memory_source.options

    def _files(self) -> _native.OpenedRecording:
        if self._memory_source is None or self.state not in ("recording", "paused"):
            return super()._files()
        dump: Callable[..., str] = self.dump
        if self._native_options["ring"] is None:
            return _native.OpenedRecording([dump()])
        import tempfile

        with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
            # What was opened stays readable when its name is gone.
            return _native.OpenedRecording([dump(os.path.join(folder, "ring.swv"))])

    def _worth_saying(self, sentences: list[str]) -> list[str]:
        is_live = self.state in ("recording", "paused")
        return [sentence for sentence in sentences if not (is_live and "was not closed" in sentence)]

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
