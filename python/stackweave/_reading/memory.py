"""The memory in a recording: what `Recording.memory()` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .memory_views import MemoryViews

if TYPE_CHECKING:
    from .. import _native
    from .memory_usage import Usage

#: The fields for blocks and bytes that were allocated in the selected time and not freed.
LEAKED = ("leaked_blocks", "leaked_bytes")


class RecordedMemory(MemoryViews):
    """The views of the memory in a recording, of all processes or of a part: see Recording.memory().

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    >>> recorder.recording.memory().totals().live_bytes >= 1_000_000
    True
    """

    __slots__ = ("_files", "_query", "_read", "_rows", "_selection")

    def __init__(self, files: _native.OpenedRecording, selection: dict[str, Any], query: dict[str, Any]) -> None:
        self._files = files
        self._selection = selection
        self._query = query
        # Figures by location may be millions: they are read when a view needs them.
        self._read = files.memory(selection, {**query, "rows": False})
        self._rows: list[dict[str, Any]] | None = None

    @property
    def source(self) -> str:
        """The origin of the figures: a "snapshot" in the file, or "replayed" from its events."""
        return str(self._read["source"])

    @property
    def mode(self) -> str | None:
        """The mode of the recorder: "history", "aggregate" or "sampled"."""
        mode: str | None = self._read["mode"]
        return mode

    @property
    def remarks(self) -> list[str]:
        """Sentences about what is missing."""
        return list(self._read["remarks"])

    def leaks(self, *, device: int | None = None) -> Usage:
        """Returns what was allocated in the selected time and not freed at its end."""
        return self._usage("leaks", self._memory_device(device), LEAKED, self._memory_now())

    def timeline(self) -> list[tuple[float, int | None, int | None]]:
        """Returns the size of the process and the bytes in use over time.

        Each row has seconds since the recording began, and two numbers of bytes, which may be None.
        """
        return self._files.memory_timeline(self._selection)

    def to_arrow(self) -> Any:
        """Returns the history as a table of pyarrow, one row for each allocation.

        Columns are time and freed_at (in seconds; no value if it was not freed), address, size, allocator, process,
        thread, device, tag and stack: a row of stacks_to_arrow().
        """
        from .memory_history import table_of

        return table_of(self._files, self._selection, self._query)

    def stacks_to_arrow(self) -> Any:
        """Returns the stacks of to_arrow(), and those of their callers, as a table of pyarrow.

        Columns are stack (its number), callers (the stack of its callers; no value at the outermost), depth, and name,
        filename, kind and line of its innermost frame.
        """
        from .memory_history import stacks_of

        return stacks_of(self._files, self._selection, self._query)

    def to_pandas(self) -> Any:
        """Returns the table of to_arrow() as a DataFrame of pandas."""
        from .event_tables import needed

        needed("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"<stackweave.RecordedMemory {self.mode}, {self.source}>"

    def _memory_devices(self, rows: bool) -> list[dict[str, Any]]:
        if not rows:
            devices: list[dict[str, Any]] = self._read["devices"]
            return devices
        if self._rows is None:
            self._rows = self._files.memory(self._selection, self._query)["devices"]
        return self._rows

    def _device_histories(self) -> list[dict[str, Any]]:
        return self._files.memory_devices(self._selection)

    def _memory_now(self) -> float:
        return max(float(process["duration"]) for process in self._files.info()["processes"])

    def _is_estimated(self) -> bool:
        return self._read["sample_every"] is not None


RecordedMemory.__module__ = "stackweave"
