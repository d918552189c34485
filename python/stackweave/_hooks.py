"""What is done for live recordings when the program ends, fails, forks or becomes another one."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from . import _fork_warning, _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ._recording import Recording

#: Those that record now.
live: list[Recording] = []
#: Puts the hooks for exceptions back, once nothing is live any more.
_restore: list[Callable[[], None]] = []
_is_prepared = False


class _Anchor:
    """What `multiprocessing` knows us by, weakly."""


_anchor = _Anchor()


def started(recording: Recording) -> None:
    global _is_prepared
    if not _is_prepared:
        _is_prepared = True
        atexit.register(_native.call_untraced, _at_exit)
        os.register_at_fork(before=_before_fork, after_in_child=_in_child)
    _finish_with_multiprocessing()
    if recording._watches_exceptions and not _restore:
        _watch_exceptions()
    live.append(recording)


def stopped(recording: Recording) -> None:
    if recording in live:
        live.remove(recording)
    if not live:
        _fork_warning.forget()
        while _restore:
            _restore.pop()()


def flush_all() -> None:
    """Called by the native part before the program becomes another one."""
    for recording in list(live):
        recording._before_exec()


def _at_exit() -> None:
    for recording in list(live):
        recording._end_with_program()


def _before_fork() -> None:
    if live:
        _fork_warning.before_fork()


def _in_child() -> None:
    _fork_warning.forget()
    for recording in live:
        recording._forked()
    util = sys.modules.get("multiprocessing.util")
    if util is not None and live:
        # A child of multiprocessing forgets what is to be done at its end, and then calls this.
        util.register_after_fork(_anchor, lambda _anchor: _finish_with_multiprocessing())


def _finish_with_multiprocessing() -> None:
    """A child of multiprocessing ends without atexit, but with finalizers of its own."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, _at_exit, exitpriority=-100)


def _watch_exceptions() -> None:
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        _tell(kind, error, traceback)
        previous(kind, error, traceback)

    previous_in_threads = threading.excepthook

    def thread_excepthook(args: threading.ExceptHookArgs) -> Any:
        _tell(args.exc_type, args.exc_value, args.exc_traceback)
        return previous_in_threads(args)

    def restore() -> None:
        if sys.excepthook is excepthook:
            sys.excepthook = previous
        if threading.excepthook is thread_excepthook:
            threading.excepthook = previous_in_threads

    sys.excepthook = excepthook
    threading.excepthook = thread_excepthook
    _restore.append(restore)


def _tell(kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
    if issubclass(kind, Exception):
        for recording in list(live):
            recording._failed(kind, error, traceback)
