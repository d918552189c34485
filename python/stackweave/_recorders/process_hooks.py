"""Hooks for active recorders: the program ends, fails, forks, or calls exec."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from .. import _native
from . import fork_warning

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .recorder import Recorder

#: The recorders that are active.
live: list[Recorder] = []
#: Restores the exception hooks when no recorder is active any more.
_restore: list[Callable[[], None]] = []
_is_prepared = False


class _Anchor:
    """An object that `multiprocessing` refers to weakly."""


_anchor = _Anchor()


def started(recorder: Recorder) -> None:
    global _is_prepared
    if not _is_prepared:
        _is_prepared = True
        atexit.register(_native.call_untraced, _at_exit)
        os.register_at_fork(before=_before_fork, after_in_child=_in_child)
    _finish_with_multiprocessing()
    if recorder._watches_exceptions and not _restore:
        _watch_exceptions()
    live.append(recorder)


def stopped(recorder: Recorder) -> None:
    if recorder in live:
        live.remove(recorder)
    if not live:
        fork_warning.forget()
        while _restore:
            _restore.pop()()


def flush_all() -> None:
    """Writes all recordings. The native module calls it before the program calls exec."""
    for recorder in list(live):
        recorder._before_exec()


def _at_exit() -> None:
    for recorder in list(live):
        recorder._end_with_program()


def _before_fork() -> None:
    if live:
        fork_warning.before_fork()


def _in_child() -> None:
    fork_warning.forget()
    for recorder in live:
        recorder._forked()
    util = sys.modules.get("multiprocessing.util")
    if util is not None and live:
        # A child of multiprocessing drops its finalizers, and then calls this.
        util.register_after_fork(_anchor, lambda _anchor: _finish_with_multiprocessing())


def _finish_with_multiprocessing() -> None:
    """Registers a finalizer: a child of multiprocessing ends without atexit."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, _at_exit, exitpriority=-100)


def _watch_exceptions() -> None:
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        _record_failure(kind, error, traceback)
        previous(kind, error, traceback)

    previous_in_threads = threading.excepthook

    def thread_excepthook(args: threading.ExceptHookArgs) -> Any:
        _record_failure(args.exc_type, args.exc_value, args.exc_traceback)
        return previous_in_threads(args)

    def restore() -> None:
        if sys.excepthook is excepthook:
            sys.excepthook = previous
        if threading.excepthook is thread_excepthook:
            threading.excepthook = previous_in_threads

    sys.excepthook = excepthook
    threading.excepthook = thread_excepthook
    _restore.append(restore)


def _record_failure(kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
    if issubclass(kind, Exception):
        for recorder in list(live):
            recorder._failed(kind, error, traceback)
