"""Writes what a memory recorder knows when a signal comes, or when the process has grown too large."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from ._native import StackweaveError

if TYPE_CHECKING:
    from collections.abc import Callable

    _Dump = Callable[[str], None]

#: How often the size of the process is looked at, in seconds.
LOOK_EVERY = 0.05
#: After a dump, the process has to shrink below this part of the limit before there is another one.
REARMED_BELOW = 0.9
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


class SignalDump:
    """Dumps at each signal, and then does what was done before."""

    def __init__(self, number: int, dump: _Dump) -> None:
        self._number = number
        self._dump = dump
        self._previous: Any = None
        self._is_on = False

    def start(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise StackweaveError("a recording with dump_signal can be started by the main thread only")
        self._previous = signal.getsignal(self._number)
        signal.signal(self._number, self._handle)
        self._is_on = True

    def stop(self) -> None:
        """The handler goes, unless the program has put in one of its own, or this is not the main thread."""
        self._is_on = False
        if threading.current_thread() is threading.main_thread() and signal.getsignal(self._number) == self._handle:
            signal.signal(self._number, signal.SIG_DFL if self._previous is None else self._previous)

    def _handle(self, number: int, frame: Any) -> None:
        if self._is_on:
            self._dump(f"signal {signal.Signals(number).name}")
        if callable(self._previous):
            self._previous(number, frame)


class SizeDump:
    """Dumps when the process has grown to a size.

    A thread that the threading module does not know looks at it: the program sees none more, and does not wait for it.
    """

    def __init__(self, limit: int, dump: _Dump) -> None:
        self._limit = limit
        self._dump = dump
        #: Which of the threads is to go on.
        self._turn = 0
        self._is_armed = True

    def start(self) -> None:
        self._turn += 1
        _thread.start_new_thread(self._watch, (self._turn,))

    def stop(self) -> None:
        self._turn += 1

    def forked(self) -> None:
        """The thread stays with the parent."""
        self._is_armed = True
        self.start()

    def _watch(self, turn: int) -> None:
        while True:
            time.sleep(LOOK_EVERY)
            if turn != self._turn:
                return
            self.look()

    def look(self) -> None:
        size = resident_bytes()
        if self._is_armed and size >= self._limit:
            self._is_armed = False
            self._dump("resident size")
        elif not self._is_armed and size < self._limit * REARMED_BELOW:
            self._is_armed = True
