"""`Recording`, and `open`. Imported when one of them is first asked for."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

# The native part asks _feeding, from any thread: it must be there before a thread can fork while it is imported.
from . import _feeding, _hooks, _native, _subprocess  # noqa: F401
from ._native import StackweaveError
from ._reading import FunctionCost, Reading
from ._recording_options import MEMORY, moments_of, native_options

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

    _Path = str | os.PathLike[str]


#: Why a ring has not all events, as it should.
FORGOTTEN = "only the last ones were kept"


class Summary(NamedTuple):
    """What became of a recording."""

    path: str
    #: Events that were written.
    events: int
    #: The size of the file.
    bytes: int
    #: Events that were not written, by the reason.
    lost: dict[str, int]
    #: Why the file could not be written, if it could not.
    error: str | None


class Recording(Reading):
    """What happens in a program, in a file: spans, instants, counters, stacks and memory.

    Recording(path) records to a new file, from start() to stop() or for the time of a with statement.
    stackweave.open() gives one that was recorded before.

    memory is what may wait to be written, as bytes or a text like "64MB". If it is used up, feeding waits for the
    writer, or with when_full="drop" events are left out and counted. With ring only the last so many bytes ("16MB"),
    seconds (a number) or both (a pair) are kept, and written by dump(), and as dump_on says: at the end of the
    recording and when an exception is not handled. What was recorded is written every flush_every seconds, and is
    then safe from whatever happens to the program. Forked children record to files of their own beside this one,
    unless follow_forks is False; with subprocesses other programs can, too, by Recording.from_environment(). An
    existing file is an error, unless overwrite is True.
    """

    __slots__ = ("__weakref__", "_dump_on", "_named_threads", "_summary")

    _dump_on: frozenset[str]
    #: The numbers of those that were named here.
    _named_threads: set[int]
    _summary: Summary | None
    #: Whether exceptions that nobody handles leave a mark. The hooks of the program run all the same.
    _watches_exceptions = True

    def __init__(
        self,
        path: _Path,
        *,
        memory: int | str = MEMORY,
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[Literal["exit", "exception"]] = ("exit", "exception"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        given = {
            "memory": memory,
            "when_full": when_full,
            "ring": ring,
            "flush_every": flush_every,
            "follow_forks": follow_forks,
            "subprocesses": subprocesses,
            "overwrite": overwrite,
        }
        moments = moments_of(dump_on)
        self._set_up(native_options(path, moments, given), moments)

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        self._native_options = options
        self._dump_on = dump_on
        self._opened_files = None
        self._named_threads = set()
        self._summary = None

    @classmethod
    def from_environment(cls) -> Self | None:
        """Records in a program that a recording one has started, if that said subprocesses=True. None otherwise."""
        recording = cls.__new__(cls)
        recording._set_up({"ring": None, "subprocesses": True})
        if not recording._start_from_environment():
            return None
        _hooks.started(recording)
        return recording

    def start(self) -> Self:
        """Begins to record."""
        self._start(self._native_options)
        _hooks.started(self)
        _share_environment()
        return self

    def stop(self) -> Summary:
        """Ends the recording; everything is in the file then. Warns if something is missing there.

        Again, it changes nothing.
        """
        return self._stop_once(by_program=True, stacklevel=3)

    def flush(self) -> None:
        """Writes what was recorded up to now."""
        if self.state not in ("stopped", "skipped"):
            self._flush()

    def dump(self, path: _Path | None = None) -> str:
        """Writes what the ring holds to a file, that of the recording if none is named, and goes on.

        Gives the file's name. A file that is not of this recording stays, unless overwrite is True: then the name gets
        a number, as in out-2.swv.
        """
        return self._dump(None if path is None else os.fsdecode(path))

    def name_thread(self, name: str | None = None) -> None:
        """Names the calling thread; without a name, as threading does. Threads of Python's get their names anyway."""
        self._name_thread(None, threading.current_thread().name if name is None else name)
        self._named_threads.add(threading.get_native_id())

    def __enter__(self) -> Self:
        return self.start() if self.state == "new" else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        if self.state == "opened":
            return
        if kind is not None and issubclass(kind, Exception):
            self._failed(kind, error, traceback)
        self._stop_once(by_program=True, stacklevel=3)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a recording can't be pickled: another process may use Recording.from_environment()")

    def __repr__(self) -> str:
        return f"<stackweave.Recording {self.path!r}, {self.state}>"

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]] | None:
        """By what recorder, and how, programs record that are started from here. None: only if they ask."""
        return None

    def _end_source(self) -> None:
        """What feeds it by itself ends. The first thing that is done at an end."""

    def _stop_once(self, *, by_program: bool, stacklevel: int) -> Summary:
        """Stops it, and warns if something is missing. With stacklevel 0 the caller reports that itself."""
        if self._summary is not None:
            return self._summary
        if self.state == "skipped":
            return Summary(self.path, 0, 0, {}, None)
        self._end_source()
        if self.state in ("recording", "paused"):
            self._name_threads()
        path, events, size, lost, error = self._stop(by_program)
        self._summary = Summary(path or self.path, events, size, lost, error)
        _hooks.stopped(self)
        _share_environment()
        complaint = _complaint(self._summary)
        if complaint and stacklevel:
            warnings.warn(complaint, RuntimeWarning, stacklevel=stacklevel)
        return self._summary

    def _name_threads(self) -> None:
        for thread in threading.enumerate():
            if thread.native_id is not None and thread.native_id not in self._named_threads:
                self._name_thread(thread.native_id, thread.name)

    def _discard(self) -> None:
        """It could not begin, or shall not have begun: no file is left of those that it has created."""
        self._discard_files()
        self._stop_once(by_program=True, stacklevel=1)
        self._discard_files()  # a ring is written at the end

    def _end_with_program(self) -> None:
        self._end_source()
        complaint = _complaint(self._stop_once(by_program=False, stacklevel=0))
        if complaint and sys.stderr is not None:
            # Not a warning: nothing handles an exception any more, and to show a warning imports modules.
            with contextlib.suppress(Exception):
                sys.stderr.write(f"stackweave: {complaint}\n")

    def _before_exec(self) -> None:
        if "exit" in self._dump_on and self._native_options["ring"] is not None:
            self._dump_quietly()
        else:
            self._flush()

    def _failed(self, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        """An exception is on its way out, with nobody to handle it."""
        if self.state != "recording":
            return
        where = "" if traceback is None else _innermost(traceback)
        self.instant(
            "unhandled exception",
            stack=False,
            type=f"{kind.__module__}.{kind.__qualname__}",
            message=error,
            where=where,
        )
        if "exception" in self._dump_on and self._native_options["ring"] is not None:
            self._dump_quietly()

    def _dump_quietly(self) -> None:
        try:
            if self._has_recorded():
                self._dump(None)
        except StackweaveError as error:
            warnings.warn(f"the ring could not be written: {error}", RuntimeWarning, stacklevel=2)


def _share_environment() -> None:
    _subprocess.share(_hooks.live, _native.Feed._environment())


def _innermost(traceback: TracebackType) -> str:
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"


def _complaint(summary: Summary) -> str | None:
    """What is missing in a recording, in one sentence."""
    missed = {reason: count for reason, count in summary.lost.items() if count and reason != FORGOTTEN}
    lost = sum(missed.values())
    reasons = ", ".join(f"{reason}: {count}" for reason, count in missed.items())
    parts = []
    if lost:
        parts.append(f"{lost} event{'s were' if lost > 1 else ' was'} lost ({reasons})")
    if summary.error:
        parts.append(f"it could not be written ({summary.error})")
    return f"the recording {summary.path} is not whole: {' and '.join(parts)}" if parts else None


def open(path: _Path | Iterable[_Path], /) -> Recording:
    """Opens what was recorded: a file, a folder of them, or several of both.

    All processes are there as one recording.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    recording = Recording.__new__(Recording)
    names = [os.fsdecode(each) for each in paths]
    recording._set_up({"path": ", ".join(names), "ring": None})
    recording._opened_files = _native.OpenedRecording(names)
    recording._opened()
    return recording


for _public in (FunctionCost, Recording, Summary, open):
    _public.__module__ = "stackweave"
