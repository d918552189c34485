"""`Recorder`: writes a recording. Imported when it is first used."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from .. import _native
from .._location import FOLDER
from .._native import StackweaveError, StateError
from .._options.option import checked, for_native
from .._options.table import WRITE
from .._reading.recording import Recording

# The native module calls native_callbacks from any thread: it must be loaded before a thread can fork during its
# import.
from . import native_callbacks, process_hooks, subprocesses  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from .._options.option import Option

    _Path = str | os.PathLike[str]


#: The reason why a ring does not have all events, which is its purpose.
FORGOTTEN = "only the last ones were kept"


class Summary(NamedTuple):
    """The result of a recorder: what it has written.

    >>> recorder = stackweave.Recorder("out.swv").start()
    >>> recorder.instant("ready")
    >>> summary = recorder.stop()
    >>> summary.events, summary.lost
    (1, {})
    """

    path: str
    #: Events that were written.
    events: int
    #: The size of the file.
    bytes: int
    #: Events that were not written, by the reason.
    lost: dict[str, int]
    #: The reason why the file could not be written, if it could not.
    error: str | None


class Recorder(_native.Feed):
    """Writes what happens in a program to a file: spans, instants, counters, stacks and memory.

    >>> with stackweave.Recorder("out.swv") as recorder:
    ...     with recorder.span("load"):
    ...         recorder.counter("rows", 100)
    >>> [event.name for event in recorder.recording.events() if event.role == "counter"]
    ['rows']

    It records from start() to stop(), or for the time of a with statement. The property `recording` reads the file
    afterwards; stackweave.open() reads the file of another program.

    buffer is the size of what may wait to be written, in bytes or as a text like "64MB". If it is full, the program
    waits for the writer, or with when_full="drop" events are left out and counted. With ring only the last events are
    kept: as many bytes ("16MB"), seconds (a number) or both (a pair). They are written by dump(), and as dump_on says
    at the end of the recording and when an exception is not handled. Everything recorded is written each flush_every
    seconds, and is then safe whatever happens to the program. Forked children record to files of their own beside this
    one, unless follow_forks is False; with subprocesses=True other programs can, too, by Recorder.from_environment().
    An existing file is an error, unless overwrite is True.
    """

    __slots__ = ("__weakref__", "_dump_on", "_named_threads", "_native_options", "_recording", "_summary")

    _native_options: dict[str, Any]
    _dump_on: frozenset[str]
    #: The numbers of the threads that were named by name_thread().
    _named_threads: set[int]
    #: The opened recording, once it is complete.
    _recording: Recording | None
    _summary: Summary | None
    #: Whether an exception that is not handled leaves an event. The hooks of the program run in any case.
    _watches_exceptions = True
    #: The name of the public class, which private ones derive from.
    _shown_as = "Recorder"

    def __init__(
        self,
        path: _Path,
        *,
        buffer: int | str = "64MiB",
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[Literal["exit", "exception"]] = ("exit", "exception"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._take(path, WRITE, locals())

    def _take(self, path: _Path, options: tuple[Option, ...], given: Mapping[str, object]) -> dict[str, Any]:
        """Checks the keywords of a constructor, and takes those for how the file is written. Returns all of them."""
        chosen = checked(options, given)
        dump_on = chosen.get("dump_on", frozenset())
        writing = tuple(option for option in WRITE if option.name in chosen)
        native = for_native(writing, chosen)
        native |= {
            "path": os.fsdecode(path),
            "ring": chosen.get("ring"),
            "dump_at_exit": chosen.get("ring") is not None and "exit" in dump_on,
            "subprocesses": chosen.get("subprocesses", False),
            "python": sys.version.split()[0],
            "package": FOLDER,
        }
        self._set_up(native, dump_on)
        return chosen

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        self._native_options = options
        self._dump_on = dump_on
        self._named_threads = set()
        self._recording = None
        self._summary = None

    @classmethod
    def from_environment(cls) -> Self | None:
        """Records in a program that a recorder with subprocesses=True has started. Returns None in other programs."""
        recorder = cls.__new__(cls)
        recorder._set_up({"ring": None, "subprocesses": True})
        if not recorder._start_from_environment():
            return None
        process_hooks.started(recorder)
        return recorder

    @property
    def path(self) -> str:
        """The file. A forked child has its own."""
        if self.state in ("new", "skipped"):
            return str(self._native_options["path"])
        return self._path()

    @property
    def recording(self) -> Recording:
        """What was recorded, opened for reading. It can be read when the recorder is stopped.

        Recorders of memory and of phases can be read while they record, too: then each access writes what was recorded
        up to now, and returns a new Recording of that.
        """
        if self._recording is None:
            if self.state == "skipped":
                raise StateError("nothing was recorded: another recorder was active")
            if self.state == "new":
                raise StateError("nothing was recorded yet: call start(), or use it in a with statement")
            if self.state != "stopped":
                return self._open_while_recording()
            self._recording = self._open_stopped()
        return self._recording

    def start(self) -> Self:
        """Starts to record."""
        self._start(self._native_options)
        process_hooks.started(self)
        _share_environment()
        return self

    def stop(self) -> Summary:
        """Ends the recording and writes all of it. Warns if something is missing in the file.

        A second call changes nothing.
        """
        return self._stop_once(by_program=True, stacklevel=3)

    def flush(self) -> None:
        """Writes what was recorded up to now."""
        if self.state not in ("stopped", "skipped"):
            self._flush()

    def dump(self, path: _Path | None = None) -> str:
        """Writes the content of the ring to a file, by default that of the recording, and continues.

        Returns the name of the file. A file that is not of this recording is not replaced, unless overwrite is True:
        the name gets a number, as in out-2.swv.
        """
        return self._dump(None if path is None else os.fsdecode(path))

    def name_thread(self, name: str | None = None) -> None:
        """Names the calling thread, by default as threading does. Threads of Python get their names by themselves."""
        self._name_thread(None, threading.current_thread().name if name is None else name)
        self._named_threads.add(threading.get_native_id())

    def __enter__(self) -> Self:
        return self.start() if self.state == "new" else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        if kind is not None and issubclass(kind, Exception):
            self._failed(kind, error, traceback)
        self._stop_once(by_program=True, stacklevel=3)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a recorder can't be pickled: another process may use Recorder.from_environment()")

    def __repr__(self) -> str:
        return f"<stackweave.{self._shown_as} {self.path!r}, {self.state}>"

    def _open_while_recording(self) -> Recording:
        """Returns what was recorded up to now. Raises StateError if this recorder can't do that."""
        raise StateError("a recording can be read when it is stopped")

    def _open_stopped(self) -> Recording:
        return Recording(self.path)

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]] | None:
        """Returns the recorder and the options for programs that this one starts. None: they choose themselves."""
        return None

    def _end_source(self) -> None:
        """Ends what feeds the recorder by itself. This is the first step of each end."""

    def _stop_once(self, *, by_program: bool, stacklevel: int) -> Summary:
        """Stops, and warns if something is missing. With stacklevel 0 the caller reports that itself."""
        if self._summary is not None:
            return self._summary
        if self.state == "skipped":
            return Summary(self.path, 0, 0, {}, None)
        self._end_source()
        if self.state in ("recording", "paused"):
            self._name_threads()
        path, events, size, lost, error = self._stop(by_program)
        self._summary = Summary(path or self.path, events, size, lost, error)
        process_hooks.stopped(self)
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
        """Ends a recording that could not start, or must not have started, and removes the files that it created."""
        self._discard_files()
        self._stop_once(by_program=True, stacklevel=1)
        self._discard_files()  # a ring is written at the end

    def _end_with_program(self) -> None:
        self._end_source()
        complaint = _complaint(self._stop_once(by_program=False, stacklevel=0))
        if complaint and sys.stderr is not None:
            # Not a warning: no code handles an exception any more, and showing a warning imports modules.
            with contextlib.suppress(Exception):
                sys.stderr.write(f"stackweave: {complaint}\n")

    def _before_exec(self) -> None:
        if "exit" in self._dump_on and self._native_options["ring"] is not None:
            self._dump_quietly()
        else:
            self._flush()

    def _failed(self, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        """Records an exception that the program does not handle."""
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
    subprocesses.share(process_hooks.live, _native.Feed._environment())


def _innermost(traceback: TracebackType) -> str:
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"


def _complaint(summary: Summary) -> str | None:
    """Returns what is missing in a recording, in one sentence."""
    missed = {reason: count for reason, count in summary.lost.items() if count and reason != FORGOTTEN}
    lost = sum(missed.values())
    reasons = ", ".join(f"{reason}: {count}" for reason, count in missed.items())
    parts = []
    if lost:
        parts.append(f"{lost} event{'s were' if lost > 1 else ' was'} lost ({reasons})")
    if summary.error:
        parts.append(f"it could not be written ({summary.error})")
    return f"the recording {summary.path} is incomplete: {' and '.join(parts)}" if parts else None


for _public in (Recorder, Summary):
    _public.__module__ = "stackweave"
