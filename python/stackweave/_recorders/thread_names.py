"""Names threads when they begin: the name of a thread that has ended is not known any more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .._native import StackweaveError

if TYPE_CHECKING:
    from collections.abc import Callable

    _Name = Callable[[int | None, str], None]

#: The method that each thread of the threading module calls when it begins.
_HOOK = "_set_native_id"


class ThreadNames:
    """Reports the name of each thread that begins to a recorder."""

    def __init__(self, name: _Name) -> None:
        self._name = name
        self._is_on = False
        self._previous: Callable[[Any], None] | None = None
        self._own: Callable[[Any], None] | None = None

    def start(self) -> None:
        previous = getattr(threading.Thread, _HOOK, None)
        if previous is None:
            return

        def set_native_id(thread: threading.Thread) -> None:
            previous(thread)
            if self._is_on:
                # Without a call that a trace would show.
                try:  # noqa: SIM105
                    self._name(None, thread._name)  # type: ignore[attr-defined]
                except StackweaveError:
                    pass

        self._is_on, self._previous, self._own = True, previous, set_native_id
        setattr(threading.Thread, _HOOK, set_native_id)

    def stop(self) -> None:
        self._is_on = False
        if self._own is not None and getattr(threading.Thread, _HOOK) is self._own:
            setattr(threading.Thread, _HOOK, self._previous)
