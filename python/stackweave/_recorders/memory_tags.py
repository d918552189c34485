"""`memory_tag`: names the purpose of allocations. Imported when it is first used."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from . import native_callbacks
from .memory import current_hooks

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    from typing_extensions import Self

    from .. import _native

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Before = tuple[_native.AllocationHooks | None, str | None]


class memory_tag:
    """Tags what this thread allocates, while memory is recorded.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     with stackweave.memory_tag("cache"):
    ...         cache = bytearray(1_000_000)
    >>> "cache" in [group.name for group in recorder.recording.memory().tags()]
    True

    In a with statement the tag applies to the block, and the previous tag applies again afterwards. As a decorator it
    applies to each call, and to each step of a generator or a coroutine. Tags do not add up: the innermost counts.
    """

    __slots__ = ("_before", "_name")

    def __init__(self, name: str, /) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a memory tag must be a str, not {type(name).__name__}")
        self._name = name
        #: The earlier tags of uses that have not ended yet, by thread.
        self._before: dict[int, list[_Before]] = {}

    def __enter__(self) -> Self:
        hooks = current_hooks()
        uses = self._before.setdefault(threading.get_ident(), [])
        uses.append((hooks, None))
        if hooks is not None:
            uses[-1] = (hooks, hooks.set_tag(self._name))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        thread = threading.get_ident()
        uses = self._before[thread]
        hooks, old = uses[-1]
        if hooks is not None and hooks is current_hooks():
            hooks.set_tag(old)
        uses.pop()
        if not uses:
            del self._before[thread]

    def __call__(self, function: _Function, /) -> _Function:
        decorated: Any = native_callbacks.decorate(self, "memory_tag")(function)
        return decorated  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<stackweave.memory_tag {self._name!r}>"


memory_tag.__module__ = "stackweave"
