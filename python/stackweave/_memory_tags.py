"""`memory_tag`: names what memory is taken for. Imported when it is first asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from . import _feeding, _memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    from typing_extensions import Self

    from . import _native

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Before = tuple[_native.MemoryRecorder | None, str | None]


class memory_tag:
    """What this thread takes has a tag, if memory is recorded just now.

    In a with statement it is there until the end of the block, and the tag that was there before comes back. As a
    decorator it is there for each call, and for each step of a generator or a coroutine. Tags of blocks inside each
    other do not add up: the innermost counts.
    """

    __slots__ = ("_before", "_name")

    def __init__(self, name: str, /) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a memory tag must be a str, not {type(name).__name__}")
        self._name = name
        #: What each use that has not ended yet has found, by thread.
        self._before: dict[int, list[_Before]] = {}

    def __enter__(self) -> Self:
        recorder = _memory.current_recorder()
        uses = self._before.setdefault(threading.get_ident(), [])
        uses.append((recorder, None))
        if recorder is not None:
            uses[-1] = (recorder, recorder.set_tag(self._name))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        thread = threading.get_ident()
        uses = self._before[thread]
        recorder, old = uses[-1]
        if recorder is not None and recorder is _memory.current_recorder():
            recorder.set_tag(old)
        uses.pop()
        if not uses:
            del self._before[thread]

    def __call__(self, function: _Function, /) -> _Function:
        decorated: Any = _feeding.decorate(self, "memory_tag")(function)
        return decorated  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<stackweave.memory_tag {self._name!r}>"


memory_tag.__module__ = "stackweave"
