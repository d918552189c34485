"""The part of a memory recording that reads: from what is kept while it runs, and from the file when it is over."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

from . import _native
from ._memory_views import MemoryViews
from ._recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable

#: All of a recording.
EVERYTHING = {"process": None, "thread": None, "start": None, "end": None}
EVERY_BLOCK = {"tag": None, "device": None, "temporary": None}


class MemoryReading(MemoryViews, Recording):
    """Can be read while it records."""

    __slots__ = ("_began", "_recorder", "_recorder_options")

    #: From start to stop.
    _recorder: _native.MemoryRecorder | None
    _recorder_options: dict[str, Any]
    #: When it was started, in the seconds of a clock that never goes back.
    _began: float

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._recorder = None
        self._began = 0.0

    def timeline(self) -> list[tuple[float, int | None, int | None]]:
        """The size of the process, and of all that is in use, over time.

        Seconds since the recording began, and two numbers of bytes, which may be None where they are not known.
        """
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
        thread, device, tag and stack, which is a text: the frames with their places, innermost first.
        """
        from ._memory_history import table_of

        selection = {"process": process, "thread": thread, "start": start, "end": end}
        return table_of(self._files(), selection, EVERY_BLOCK)

    def _memory_devices(self, rows: bool) -> list[dict[str, Any]]:
        if self._recorder is None:
            query = {**EVERY_BLOCK, "rows": rows}
            read: list[dict[str, Any]] = self._files().memory(EVERYTHING, query)["devices"]
            return read
        live: list[dict[str, Any]] = self._recorder.snapshot()["devices"]
        now = self._memory_now()
        for device in live:
            totals = device["totals"]
            totals["peak_time"] = max(now - totals["peak_seconds_ago"], 0.0)
        return live

    def _memory_now(self) -> float:
        if self._recorder is not None:
            return time.monotonic() - self._began
        return float(self._files().info()["processes"][0]["duration"])

    def _is_estimated(self) -> bool:
        return bool(self._recorder_options["mode"] == "sampled")

    def _files(self) -> _native.OpenedRecording:
        if self.state not in ("recording", "paused"):
            return super()._files()
        dump: Callable[..., str] = self.dump
        if self._native_options["ring"] is None:
            return _native.OpenedRecording([dump()])
        with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
            # What was opened stays readable when its name is gone.
            return _native.OpenedRecording([dump(os.path.join(folder, "ring.swv"))])

    def _worth_saying(self, sentences: list[str]) -> list[str]:
        is_live = self.state in ("recording", "paused")
        return [sentence for sentence in sentences if not (is_live and "was not closed" in sentence)]
