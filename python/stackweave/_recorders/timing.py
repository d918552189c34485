"""`Timing`: records phases that a program reports. Imported when it is first used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .. import _native
from .._native import RecordingError
from .._open_files import identity_of
from .._options.table import WRITE_PHASES
from .._reading.recording import Recording, open_unfinished
from .recorder import Recorder, Summary
from .timing_problems import Problems, sentences_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    _Path = str | os.PathLike[str]


class OpenPhase(NamedTuple):
    """A phase that has begun and not ended.

    >>> with stackweave.Timing() as timing, timing.phase("plan", "query.sql", 3):
    ...     timing.current()
    OpenPhase(name='plan', filename='query.sql', lineno=3)
    """

    name: str
    #: "" and 0 if none was given.
    filename: str
    lineno: int


class Timing(Recorder):
    """Records phases that nest, for programs with functions of their own that are no calls of Python.

    >>> with stackweave.Timing() as timing:
    ...     with timing.phase("plan", "query.sql", 3):
    ...         main()
    >>> [cost.name for cost in timing.recording.phases()]
    ['plan']

    A compiler that traces code, a query planner or a build tool reports its phases by push() and pop(), phase() or
    run(). Each thread has phases of its own. It records from its construction to stop() or the end of a with statement.
    Its property `recording` can be read at any time: stats() has ncalls, tottime and cumtime as cProfile means them,
    phases() the same and more, runs() a row for each run().

    Without a path the recording is a temporary file that is gone with the object; save() keeps it. clock is a function
    that returns nanoseconds as an int and never goes back; the default is the clock of the recording. Other options:
    see Recorder.

    Begins and ends that do not match are no errors: a pop() without a push() is counted, and so are phases that were
    left open. problems() returns the counts, explain_problems() sentences. What is reported after stop() is ignored.
    """

    __slots__ = ("_clock", "_kept")

    _clock: Callable[[], int] | None
    #: The file, if it has no name.
    _kept: _Unnamed | None
    _shown_as = "Timing"

    push = _native.Feed._push
    pop = _native.Feed._pop
    phase = _native.Feed._phase
    run = _native.Feed._run

    def __init__(
        self,
        path: _Path | None = None,
        *,
        clock: Callable[[], int] | None = None,
        buffer: int | str = "64MiB",
        when_full: Literal["block", "drop"] = "block",
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        if path is None and subprocesses:
            raise ValueError("subprocesses needs a path: the recordings of other programs are beside it")
        if clock is not None and not callable(clock):
            raise TypeError(f"clock must be a function that returns nanoseconds, not {type(clock).__name__}")
        chosen = self._take("" if path is None else path, WRITE_PHASES, locals())
        self._native_options["follow_forks"] = chosen["follow_forks"] and path is not None
        self._clock = clock
        self._native_options |= {"timing": True, "own_clock": clock is not None}
        self.start()

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._clock = None
        self._kept = None

    @classmethod
    def from_environment(cls) -> Self | None:
        """Records in a program that a recorder with subprocesses=True has started. Returns None in other programs."""
        timing = super().from_environment()
        if timing is not None:
            _native.timing_start(timing, None)
        return timing

    def start(self) -> Self:
        """Starts to record. The constructor calls it; a second call changes nothing."""
        if self.state != "new":
            return self
        if self._native_options["path"]:
            self._begin()
        else:
            self._begin_without_name()
        return self

    def _begin(self) -> None:
        self._native_options["named_later"] = True
        super().start()
        try:
            _native.timing_start(self, self._clock)
            self._publish()
        except BaseException:
            self._discard()
            raise
        finally:
            self._clock = None

    def _begin_without_name(self) -> None:
        """Removes the name of the file once it is open, so that nothing is left however the program ends."""
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="stackweave-")
        try:
            path = os.path.join(folder, "timing.swv")
            self._native_options["path"] = path
            self._begin()
            self._kept = _Unnamed(path)
        finally:
            self._native_options["path"] = ""
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def path(self) -> str:
        """The file, or "" if it is temporary. A forked child has its own."""
        return super().path if self._kept is None else ""

    def save(self, path: _Path, *, overwrite: bool = False) -> str:
        """Writes what was recorded up to now to a file, and returns its name.

        An existing file is replaced only with overwrite=True.
        """
        self.flush()
        _native.copy_to_output(self._readable(), path, overwrite)
        return os.fsdecode(path)

    def current(self) -> OpenPhase | None:
        """Returns the innermost open phase of the calling thread."""
        phases = self.open_phases()
        return phases[-1] if phases else None

    def open_phases(self) -> list[OpenPhase]:
        """Returns the open phases of the calling thread, outermost first."""
        return [OpenPhase(*phase) for phase in _native.timing_open_phases(self)]

    def problems(self) -> Problems:
        """Returns the counts of phases whose starts and ends do not match."""
        return Problems(*_native.timing_problems(self))

    def explain_problems(self) -> list[str]:
        """Returns the same as sentences, with names and numbers of phases. An empty list if all is well."""
        return sentences_of(self.problems(), _native.timing_anomalies(self), self.open_phases())

    def __repr__(self) -> str:
        where = "in a temporary file" if self._kept is not None else repr(self.path)
        return f"<stackweave.{self._shown_as} {where}, {self.state}>"

    def _failed(self, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        # The clock of the program does not give the time of that.
        if not self._native_options.get("own_clock"):
            super()._failed(kind, error, traceback)

    def _readable(self) -> str:
        """Returns the name by which this process can open the file."""
        if self._kept is None:
            return self.path
        if not self._kept.is_open():
            raise RecordingError("the temporary file of this timing was closed by the program: give it a path")
        return self._kept.name

    def _open_while_recording(self) -> Recording:
        self.flush()
        return open_unfinished(self._readable(), self.path)

    def _open_stopped(self) -> Recording:
        recording = Recording(self._readable())
        recording._path = self.path
        return recording

    def _stop_once(self, *, by_program: bool, stacklevel: int) -> Summary:
        summary = super()._stop_once(by_program=by_program, stacklevel=stacklevel and stacklevel + 1)
        if self._kept is not None and summary.path:
            self._summary = summary = summary._replace(path="")
        return summary


class _Unnamed:
    """An open file without a name, which is gone with this object."""

    __slots__ = ("_close", "_identity", "_number", "name")

    def __init__(self, path: str) -> None:
        self._number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._identity = identity_of(self._number)
        self._close = os.close
        self.name = f"/proc/self/fd/{self._number}"

    def is_open(self) -> bool:
        """Returns whether the file is open. The program may have closed files that it did not open."""
        return identity_of(self._number) == self._identity

    def __del__(self, identity: Callable[[int], object] = identity_of) -> None:
        number = getattr(self, "_number", None)
        if number is not None and identity(number) == self._identity:
            self._close(number)


for _public in (OpenPhase, Timing):
    _public.__module__ = "stackweave"
