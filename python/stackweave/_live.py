"""Spans, instants and counters for whoever records just now. Imported when one of them is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _feeding, _hooks
from ._native import StackweaveError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    from typing_extensions import Self

    from ._native import Span

    _Function = TypeVar("_Function", bound=Callable[..., Any])


class span:
    """Something that takes time, of a name, in all recordings that are live; if there is none, nothing.

    In a with statement it begins and ends with the block. As a decorator it does so with each call, and with each step
    of a generator, a coroutine or an asynchronous generator. With stack the stack is captured. Details become JSON.
    """

    __slots__ = ("_keywords", "_name", "_opened")

    def __init__(self, name: str, /, *, stack: bool = False, **details: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a span must be a str, not {type(name).__name__}")
        self._name = name
        self._keywords = {"stack": True, **details} if stack else details
        #: What each use that has not ended yet has begun.
        self._opened: list[list[Span] | tuple[()]] = []

    def __enter__(self) -> Self:
        live = _hooks.live
        if not live:
            self._opened.append(())
            return self
        opened: list[Span] = []
        for recording in live:
            try:
                begun = recording.span(self._name, **self._keywords) if self._keywords else recording.span(self._name)
                begun.__enter__()
                opened.append(begun)
            except StackweaveError:  # another thread has just stopped it
                continue
        self._opened.append(opened)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        for begun in reversed(self._opened.pop()):
            begun.__exit__(kind, error, traceback)

    def __call__(self, function: _Function, /) -> _Function:
        decorated: Any = _feeding.decorate(self)(function)
        return decorated  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<stackweave.span {self._name!r}>"


def instant(name: str, /, *, stack: bool = True, **details: Any) -> None:
    """Something that happens now, in all recordings that are live; if there is none, nothing."""
    for recording in _hooks.live:
        try:
            recording.instant(name, stack=stack, **details)
        except StackweaveError:  # another thread has just stopped it
            continue


def counter(name: str, value: float, /) -> None:
    """A quantity that has this value from now on, in all recordings that are live; if there is none, nothing."""
    for recording in _hooks.live:
        try:
            recording.counter(name, value)
        except StackweaveError:
            continue


for _public in (span, instant, counter):
    _public.__module__ = "stackweave"
