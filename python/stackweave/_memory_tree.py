"""Who called whom, down to those who took memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._printable import printable
from ._sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._native import Frame

#: What has a smaller share of the whole is not printed.
LEAST_SHARE = 0.01


class UsageTree:
    """A function, and what it and those that it called have taken. The root is the program, and has no function."""

    __slots__ = ("_children", "_frame", "blocks", "measure", "self", "total")

    def __init__(self, measure: str, frame: Frame | None = None) -> None:
        #: Which moment it is about.
        self.measure = measure
        #: The bytes that it took with all that it called, and those that it took itself.
        self.total = 0
        self.self = 0
        #: The blocks that it took with all that it called.
        self.blocks = 0
        self._frame = frame
        self._children: dict[tuple[object, ...], UsageTree] = {}

    @property
    def function(self) -> str | None:
        return None if self._frame is None else self._frame.qualname or self._frame.name

    @property
    def file(self) -> str | None:
        return None if self._frame is None else self._frame.filename

    @property
    def line(self) -> int | None:
        """The line that it was at."""
        return None if self._frame is None else self._frame.line

    @property
    def kind(self) -> str | None:
        return None if self._frame is None else self._frame.kind

    @property
    def module(self) -> str | None:
        return None if self._frame is None else self._frame.module

    @property
    def children(self) -> tuple[UsageTree, ...]:
        """What it called, the most bytes first."""
        return tuple(sorted(self._children.values(), key=lambda child: child.total, reverse=True))

    def __str__(self) -> str:
        lines = [f"{size_text(self.total):>10}  {self.measure}"]
        least = self.total * LEAST_SHARE
        left = [(child, 1) for child in reversed(self.children)]
        while left:
            node, depth = left.pop()
            if node.total < least:
                continue
            place = f"  {node.file}:{node.line}" if node.file else f"  [{node.module}]" if node.module else ""
            lines.append(f"{size_text(node.total):>10}  {'  ' * depth}{node.function}{place}")
            left.extend((child, depth + 1) for child in reversed(node.children))
        return printable("\n".join(lines))

    def __repr__(self) -> str:
        return printable(f"<stackweave.UsageTree {self.function or self.measure}: {size_text(self.total)}>")

    def _add(self, stack: Iterable[Frame], bytes_: int, blocks: int) -> None:
        """A stack, outermost first."""
        node = self
        node.total += bytes_
        node.blocks += blocks
        for frame in stack:
            key = (frame.kind, frame.qualname or frame.name, frame.filename, frame.line, frame.module)
            child = node._children.get(key)
            if child is None:
                child = node._children[key] = UsageTree(self.measure, frame)
            node = child
            node.total += bytes_
            node.blocks += blocks
        node.self += bytes_


def tree_of(measure: str, stacks: Iterable[tuple[tuple[Frame, ...], int, int]]) -> UsageTree:
    root = UsageTree(measure)
    for stack, bytes_, blocks in stacks:
        root._add(reversed(stack), bytes_, blocks)
    return root


UsageTree.__module__ = "stackweave"
