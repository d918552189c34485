"""What can be asked about memory of a recording that is over: what `Recording.memory()` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._memory_views import MemoryViews

if TYPE_CHECKING:
    from . import _native
    from ._memory_usage import Usage

#: Blocks, and bytes: as of what is in use, but for what was taken before the time that was asked for.
LEAKED = ("leaked_blocks", "leaked_bytes")


class RecordedMemory(MemoryViews):
    """Memory as it was recorded, of all processes or of a part: see the views of stackweave.memory()."""

    __slots__ = ("_files", "_query", "_read", "_selection")

    def __init__(self, files: _native.OpenedRecording, selection: dict[str, Any], query: dict[str, Any]) -> None:
        self._files = files
        self._selection = selection
        self._query = query
        self._read = files.memory(selection, query)

    @property
    def source(self) -> str:
        """Where the figures are from: a "snapshot" in the file, or "replayed" from its events."""
        return str(self._read["source"])

    @property
    def mode(self) -> str | None:
        """How it was recorded: "history", "aggregate" or "sampled"."""
        mode: str | None = self._read["mode"]
        return mode

    @property
    def remarks(self) -> list[str]:
        """What is missing, in sentences."""
        return list(self._read["remarks"])

    def leaks(self, *, device: int | None = None) -> Usage:
        """What was taken in the time that was asked for, and is not freed at its end."""
        return self._usage("leaks", self._memory_device(device), LEAKED, self._memory_now())

    def timeline(self) -> list[tuple[float, int | None, int | None]]:
        """The size of the process, and of all that is in use, over time."""
        return self._files.memory_timeline(self._selection)

    def to_arrow(self) -> Any:
        """The history as a table of pyarrow, one row for each allocation; stack is a row of stacks_to_arrow()."""
        from ._memory_history import table_of

        return table_of(self._files, self._selection, self._query)

    def stacks_to_arrow(self) -> Any:
        """The stacks of to_arrow(), and those of their callers, as a table of pyarrow.

        Columns are stack (its number), callers (the stack of its callers; no value at the outermost), depth, and name,
        filename, kind and line of its innermost frame.
        """
        from ._memory_history import stacks_of

        return stacks_of(self._files, self._selection, self._query)

    def to_pandas(self) -> Any:
        """What to_arrow() gives, as a DataFrame of pandas."""
        from ._tables import needed

        needed("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"<stackweave.RecordedMemory {self.mode}, {self.source}>"

    def _memory_devices(self, rows: bool) -> list[dict[str, Any]]:
        devices: list[dict[str, Any]] = self._read["devices"]
        return devices

    def _device_histories(self) -> list[dict[str, Any]]:
        return self._files.memory_devices(self._selection)

    def _memory_now(self) -> float:
        return max(float(process["duration"]) for process in self._files.info()["processes"])

    def _is_estimated(self) -> bool:
        return self._read["sample_every"] is not None


RecordedMemory.__module__ = "stackweave"
