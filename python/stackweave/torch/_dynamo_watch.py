"""What is open while torch compiles, thread by thread, and what became of it.

Torch calls everything in here in the middle of a compile: nothing may be raised, whatever goes wrong is counted.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    from .._timing import Timing

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

#: So much of a message is kept.
LONGEST_MESSAGE = 500
#: So many errors of ours are told; all are counted.
MOST_ERRORS = 10

RUN, PHASE, ROOT, CALL = "run", "phase", "root", "call"


class Open:
    """Something that has begun on this thread."""

    __slots__ = ("details", "frame", "is_open", "key", "kind", "last_metrics", "outer_error")

    def __init__(self, kind: str, key: object, frame: Any) -> None:
        self.kind = kind
        self.key = key
        #: The context manager of the recording.
        self.frame = frame
        self.is_open = True
        #: What was being handled when it began: that is not why it ends.
        self.outer_error = sys.exc_info()[1]
        #: What is told at its end.
        self.details: dict[str, Any] = {}
        #: The last account of torch's when it began.
        self.last_metrics: Any = None


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: list[Open] = []
        #: Whether what was traced last has failed.
        self.has_failed = False


def quiet(method: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """Whatever it raises is noted by the watch, which is its first argument, and None is given."""

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
    """Puts what torch does into a recording, as long as it is on."""

    def __init__(self, timing: Timing, *, phases: bool) -> None:
        self.timing = timing
        self.with_phases = phases
        self.is_on = True
        #: What was compiled, by its compile id: name, file and line.
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
        """What went wrong in here, a line for each kind."""
        lines = [text if count == 1 else f"{text} ({count} times)" for text, count in self._errors.items()]
        untold = self.error_count - sum(self._errors.values())
        return [*lines, f"and {untold} more"] if untold else lines

    def begin(self, kind: str, key: object, frame: Any) -> Open:
        """Enters the frame, on this thread."""
        begun = Open(kind, key, frame)
        frame.__enter__()
        self.thread.open.append(begun)
        return begun

    def innermost(self, kind: str, key: object = None) -> Open | None:
        """What began last of this kind, and is still open on this thread. Without a key any one of the kind."""
        for entry in reversed(self.thread.open):
            if entry.kind == kind and (key is None or entry.key == key):
                return entry
        return None

    def end(self, begun: Open, error: BaseException | None = None, **details: Any) -> None:
        """Ends it, and before it what was left open in it. Once it has ended, nothing is done."""
        if not begun.is_open or begun not in self.thread.open:
            return
        while (inner := self.thread.open.pop()) is not begun:
            inner.is_open = False
        begun.is_open = False
        if error is not None:
            details["error"] = describe(error)
        begun.frame.end(failed=error is not None, **details)

    def error_of(self, begun: Open) -> BaseException | None:
        """The exception that ends it, if one is on its way through the caller."""
        error = sys.exc_info()[1]
        return None if error is begun.outer_error else error


def describe(error: BaseException) -> str:
    """The kind of an exception, and the first line of what it says. Those that begin a new attempt say why."""
    message = first_line(getattr(error, "restart_reason", None) or error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def first_line(text: object) -> str:
    """Of what an object says. Two, if the first one only announces the other."""
    try:
        lines = [line.strip() for line in str(text).strip().splitlines()]
    except Exception:
        return ""
    count = 2 if lines and lines[0].endswith(":") else 1
    return " ".join(lines[:count])[:LONGEST_MESSAGE]
