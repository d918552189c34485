"""Tracks the open phases of each thread while torch compiles.

Torch calls all functions here during a compilation: they must not raise, and errors are counted.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    from ..._recorders.timing import Timing

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

#: The length at which messages are cut.
LONGEST_MESSAGE = 500
#: The most errors that are reported; all are counted.
MOST_ERRORS = 10

RUN, PHASE, ROOT, CALL = "run", "phase", "root", "call"


class Open:
    """A phase that has begun on this thread."""

    __slots__ = ("details", "frame", "is_open", "key", "kind", "last_metrics", "outer_error")

    def __init__(self, kind: str, key: object, frame: Any) -> None:
        self.kind = kind
        self.key = key
        #: The context manager of the recorder.
        self.frame = frame
        self.is_open = True
        #: The exception that was being handled when it began, which is not the reason for its end.
        self.outer_error = sys.exc_info()[1]
        #: The attributes that are recorded at its end.
        self.details: dict[str, Any] = {}
        #: The last metrics of torch when it began.
        self.last_metrics: Any = None


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: list[Open] = []
        #: Whether the last tracing has failed.
        self.has_failed = False


def quiet(method: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """Makes a function note its exceptions in the watch, its first argument, and return None."""

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            watch: Any = args[0]
            watch.note_error(method.__name__, error)
            return None

    return call


class Watch:
    """Records what torch does, while it is on."""

    def __init__(self, timing: Timing, *, phases: bool) -> None:
        self.timing = timing
        self.with_phases = phases
        self.is_on = True
        #: The compiled functions by compile ID: name, file and line.
        self.compiled: dict[str | None, tuple[str, str, int]] = {}
        self.error_count = 0
        self._errors: dict[str, int] = {}
        self.thread = _Thread()

    def note_error(self, where: str, error: BaseException) -> None:
        self.error_count += 1
        text = f"{where}: {describe(error)}"
        if text in self._errors or len(self._errors) < MOST_ERRORS:
            self._errors[text] = self._errors.get(text, 0) + 1

    def errors(self) -> list[str]:
        """Returns the errors in the hooks, a line for each kind."""
        lines = [text if count == 1 else f"{text} ({count} times)" for text, count in self._errors.items()]
        unlisted = self.error_count - sum(self._errors.values())
        return [*lines, f"and {unlisted} more"] if unlisted else lines

    def begin(self, kind: str, key: object, frame: Any) -> Open:
        """Enters the frame on this thread."""
        begun = Open(kind, key, frame)
        frame.__enter__()
        self.thread.open.append(begun)
        return begun

    def innermost(self, kind: str, key: object = None) -> Open | None:
        """Returns the innermost open phase of this kind on this thread, of any key if none is given."""
        for entry in reversed(self.thread.open):
            if entry.kind == kind and (key is None or entry.key == key):
                return entry
        return None

    def end(self, begun: Open, error: BaseException | None = None, **details: Any) -> None:
        """Ends a phase, after the phases that were left open in it. If it has ended already, nothing happens."""
        if not begun.is_open or begun not in self.thread.open:
            return
        while (inner := self.thread.open.pop()) is not begun:
            inner.is_open = False
        begun.is_open = False
        if error is not None:
            details["error"] = describe(error)
        begun.frame.end(failed=error is not None, **details)

    def error_of(self, begun: Open) -> BaseException | None:
        """Returns the exception that ends a phase, if one is propagating through the caller."""
        error = sys.exc_info()[1]
        return None if error is begun.outer_error else error


def describe(error: BaseException) -> str:
    """Returns the type of an exception and the first line of its message, or the reason for a new attempt."""
    message = first_line(getattr(error, "restart_reason", None) or error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def first_line(text: object) -> str:
    """Returns the first line of an object's text; two lines if the first ends with a colon."""
    try:
        lines = [line.strip() for line in str(text).strip().splitlines()]
    except Exception:
        return ""
    count = 2 if lines and lines[0].endswith(":") else 1
    return " ".join(lines[:count])[:LONGEST_MESSAGE]
