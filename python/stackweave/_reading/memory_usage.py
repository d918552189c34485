"""Memory by stack: what `peak()`, `leaks()` and `current()` return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .._native import Frame, UsageTree


class UsageRow(NamedTuple):
    """The memory of one stack, allocator, tag and thread.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    >>> row = recorder.recording.peak().rows[0]
    >>> row.bytes >= 1_000_000, row.blocks >= 1
    (True, True)
    """

    #: Innermost frame first. Empty if it is not known.
    stack: tuple[Frame, ...]
    bytes: int
    blocks: int
    #: "malloc", "mmap", "PyObject_Malloc" ...
    allocator: str
    #: The tag of memory_tag().
    tag: str | None
    #: The number that the system has given to the thread.
    thread: int
    thread_name: str

    @property
    def frame(self) -> Frame | None:
        """The innermost frame that is not of the interpreter."""
        return next(iter(_native.visible_frames(self.stack)), None)

    @property
    def name(self) -> str | None:
        """The function of that frame."""
        frame = self.frame
        return None if frame is None else frame.qualname or frame.name


class FunctionUsage(NamedTuple):
    """The memory of one function, in bytes.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    >>> usage = recorder.recording.peak().top(1)[0]
    >>> usage.self >= 1_000_000
    True
    """

    name: str
    filename: str | None
    #: The first line of the function, if it is known.
    lineno: int | None
    #: Bytes that it allocated itself.
    self: int
    #: Bytes that it and the functions that it calls allocated; recursive calls are counted once.
    total: int
    #: Blocks that it allocated itself.
    blocks: int


class Usage:
    """Memory in use by stack, the most bytes first. Its text is a table. With sampling, figures are estimates.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    >>> peak = recorder.recording.peak()
    >>> peak.bytes >= 1_000_000, len(peak) >= 1
    (True, True)
    """

    __slots__ = ("_rows", "_used", "blocks", "bytes", "is_estimate", "name", "time")

    def __init__(self, name: str, figures: _Figures, rows: Iterable[dict[str, Any]], names: tuple[str, str]) -> None:
        #: The name of the view: "peak", "leaks", "current", "temporary".
        self.name = name
        self.bytes = figures.bytes
        self.blocks = figures.blocks
        #: The moment, in seconds since the recording began.
        self.time = figures.time
        self.is_estimate = figures.is_estimate
        blocks, bytes_ = names
        used = [row for row in rows if row[blocks] or row[bytes_]]
        used.sort(key=lambda row: (row[bytes_], row[blocks]), reverse=True)
        self._used = [(row, row[bytes_], row[blocks]) for row in used]
        self._rows: tuple[UsageRow, ...] | None = None

    @property
    def rows(self) -> tuple[UsageRow, ...]:
        """The memory of each stack, the most bytes first."""
        if self._rows is None:
            self._rows = tuple(
                UsageRow(
                    _frames_of(row["stack"]),
                    bytes_,
                    blocks,
                    row["allocator"],
                    row["tag"],
                    row["thread"],
                    row["thread_name"],
                )
                for row, bytes_, blocks in self._used
            )
        return self._rows

    def __iter__(self) -> Iterator[UsageRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self._used)

    def top(self, limit: int | None = None) -> list[FunctionUsage]:
        """Returns the memory of each function, the highest self bytes first, at most limit of them."""
        return [FunctionUsage(*cost) for cost in _native.usage_top(self._stacks())[:limit]]

    def tree(self, *, all: bool = False) -> UsageTree:
        """Returns the tree of callers of allocating functions, with frames of the interpreter if all is True."""
        return _native.usage_tree(self.name, self._stacks(), all)

    def table(self, limit: int = 10, depth: int = 6) -> str:
        """Returns the stacks with most bytes as a table, with depth frames of each. str() returns the same."""
        from .memory_text import usage_table

        return usage_table(self, limit, depth)

    def _stacks(self) -> list[tuple[tuple[Frame, ...], int, int]]:
        return [(row.stack, row.bytes, row.blocks) for row in self.rows]

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<stackweave.Usage {self.name}: {size_text(self.bytes)} in {self.blocks:,} blocks>"


class _Figures(NamedTuple):
    bytes: int
    blocks: int
    time: float
    is_estimate: bool


def _frames_of(stack: Any) -> tuple[Frame, ...]:
    return () if stack is None else tuple(stack.frames)


for _public in (UsageRow, FunctionUsage, Usage):
    _public.__module__ = "stackweave"
