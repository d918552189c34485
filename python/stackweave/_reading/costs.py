"""The rows of top() and phases() of a Recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._native import Hidden

_Row = TypeVar("_Row")


class Costs(list[_Row]):
    """The costs of functions, the most expensive first: a list, with what is hidden of the whole.

    >>> with stackweave.trace("calls.swv") as recorder:
    ...     main()
    >>> costs = recorder.recording.top(1, all=True)
    >>> len(costs), costs.hidden.share
    (1, 0.0)
    """

    __slots__ = ("hidden",)

    def __init__(self, rows: Iterable[_Row], hidden: Hidden) -> None:
        super().__init__(rows)
        #: The functions inside libraries and the interpreter, which all=True shows.
        self.hidden = hidden


Costs.__module__ = "stackweave"
