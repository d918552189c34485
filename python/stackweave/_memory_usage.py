"""What memory was used at some moment, by stack: what `peak()`, `leaks()` and `current()` give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._native import Frame, UsageTree


class UsageRow(NamedTuple):
    """What one place has taken: a stack, an allocator, a tag and a thread."""

    #: Innermost first. Empty if it is not known.
    stack: tuple[Frame, ...]
    bytes: int
    blocks: int
    #: "malloc", "mmap", "PyObject_Malloc" ...
    allocator: str
    #: What memory_tag() said.
    tag: str | None
    #: The number that the system has given to the thread.
    thread: int
    thread_name: str

    @property
    def frame(self) -> Frame | None:
        """The innermost frame that is not the interpreter's."""
        return next(iter(_native.seen_frames(self.stack)), None)

    @property
    def function(self) -> str | None:
        """What that frame is of."""
        frame = self.frame
        return None if frame is None else frame.qualname or frame.name


class FunctionUsage(NamedTuple):
    """What a function has taken, in bytes."""

    function: str
    file: str | None
    #: The line that it begins on, if that is known.
    line: int | None
    #: What it took itself.
    own: int
    #: The same with all that it called; once where it calls itself.
    total: int
    #: Blocks that it took itself.
    blocks: int


class Usage:
    """Memory in use, by who took it: the most bytes first. Its text is a table.

    Of a recording that samples, all numbers are estimates.
    """

    __slots__ = ("_rows", "_used", "blocks", "bytes", "is_estimate", "name", "time")

    def __init__(self, name: str, figures: _Figures, rows: Iterable[dict[str, Any]], names: tuple[str, str]) -> None:
        #: Which moment it is about: "peak", "leaks", "current", "temporary".
        self.name = name
        self.bytes = figures.bytes
        self.blocks = figures.blocks
        #: When it was so, in seconds since the recording began.
        self.time = figures.time
        self.is_estimate = figures.is_estimate
        blocks, bytes_ = names
        used = [row for row in rows if row[blocks] or row[bytes_]]
        used.sort(key=lambda row: (row[bytes_], row[blocks]), reverse=True)
        self._used = [(row, row[bytes_], row[blocks]) for row in used]
        self._rows: tuple[UsageRow, ...] | None = None

    @property
    def rows(self) -> tuple[UsageRow, ...]:
        """What each place has taken, the most first."""
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
        """What each function has taken, those that took most themselves first; at most limit of them."""
        return [FunctionUsage(*cost) for cost in _native.usage_top(self._stacks())[:limit]]

    def tree(self, *, all: bool = False) -> UsageTree:
        """Who called whom, down to those who took memory. The interpreter's frames are left out, unless all is True."""
        return _native.usage_tree(self.name, self._stacks(), all)

    def table(self, limit: int = 10, depth: int = 6) -> str:
        """The stacks that took most as a table, with so many frames of each. str() is the same."""
        from ._memory_text import usage_table

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
