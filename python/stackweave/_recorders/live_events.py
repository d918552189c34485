"""Spans, instants and counters in all recordings that are active. Imported when one of them is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._native import StackweaveError
from . import native_callbacks, process_hooks

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    from typing_extensions import Self

    from .._native import Span

    _Function = TypeVar("_Function", bound=Callable[..., Any])


class span:
    """A span of time with a name, in all recordings that are active. Without any, it does nothing.

    >>> with stackweave.Recorder("out.swv") as recorder:
    ...     with stackweave.span("load", rows=100):
    ...         main()
    >>> [event.name for event in recorder.recording.events() if event.role == "begin"]
    ['load']

    In a with statement it begins and ends with the block. As a decorator it does so with each call, and with each step
    of a generator, a coroutine or an asynchronous generator. With stack=True the stack is captured. Details become
    JSON.
    """

    __slots__ = ("_keywords", "_name", "_opened")

    def __init__(self, name: str, /, *, stack: bool = False, **details: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a span must be a str, not {type(name).__name__}")
        self._name = name
        self._keywords = {"stack": True, **details} if stack else details
        #: The spans of each use that has not ended yet.
        self._opened: list[list[Span] | tuple[()]] = []

    def __enter__(self) -> Self:
        live = process_hooks.live
        if not live:
            self._opened.append(())
            return self
        opened: list[Span] = []
        for recorder in live:
            try:
                begun = recorder.span(self._name, **self._keywords) if self._keywords else recorder.span(self._name)
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
        decorated: Any = native_callbacks.decorate(self)(function)
        return decorated  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<stackweave.span {self._name!r}>"


def instant(name: str, /, *, stack: bool = True, **details: Any) -> None:
    """Records an event without duration, in all recordings that are active. Without any, it does nothing.

    >>> with stackweave.Recorder("out.swv") as recorder:
    ...     stackweave.instant("ready")
    >>> [event.name for event in recorder.recording.events()]
    ['ready']
    """
    for recorder in process_hooks.live:
        try:
            recorder.instant(name, stack=stack, **details)
        except StackweaveError:  # another thread has just stopped it
            continue


def counter(name: str, value: float, /) -> None:
    """Records the value of a quantity, in all recordings that are active. Without any, it does nothing.

    >>> with stackweave.Recorder("out.swv") as recorder:
    ...     stackweave.counter("rows", 100)
    >>> [list(event.values.values()) for event in recorder.recording.events()]
    [[100.0]]
    """
    for recorder in process_hooks.live:
        try:
            recorder.counter(name, value)
        except StackweaveError:
            continue


for _public in (span, instant, counter):
    _public.__module__ = "stackweave"
