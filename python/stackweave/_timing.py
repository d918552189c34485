"""`Timing`: phases that a program tells of. Imported when it is first asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import _native
from ._native import RecordingError
from ._open_files import identity_of
from ._recording import Recording, Summary
from ._recording_options import MEMORY
from ._timing_problems import Problems, sentences_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    _Path = str | os.PathLike[str]


class OpenFrame(NamedTuple):
    """A phase that is open."""

    name: str
    #: "" and 0 if none was given.
    filename: str
    line: int


class Timing(Recording):
    """Phases that nest, in a recording: for what has functions of its own that are no calls of Python's.

    A compiler that traces code, a planner of queries, a tool that builds: it says by push() and pop(), frame() or run()
    what it is at. Each thread has phases of its own. It records as soon as it is made, until stop() or the end of a
    with statement, and can be read all the while: stats() has ncalls, tottime and cumtime as cProfile means them,
    phases() the same and more, runs() a row for each run().

    Without a path it is kept in a temporary file that is gone with it; save() keeps it. clock is a function that gives
    nanoseconds as an int, and never goes back; without one they are those of the recording. The other options, and what
    else can be asked of it, are those of Recording.

    Nothing that does not fit together is an error: a pop() without a push() is counted, and so are phases that were
    left open. problems() tells how many, explain_problems() which ones. What comes after stop() is ignored.
    """

    __slots__ = ("_clock", "_kept")

    _clock: Callable[[], int] | None
    #: The file, if it has no name.
    _kept: _Unnamed | None

    push = _native.Feed._push
    pop = _native.Feed._pop
    frame = _native.Feed._frame
    run = _native.Feed._run

    def __init__(
        self,
        path: _Path | None = None,
        *,
        clock: Callable[[], int] | None = None,
        memory: int | str = MEMORY,
        when_full: Literal["block", "drop"] = "block",
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        if path is None and subprocesses:
            raise ValueError("subprocesses needs a path: what other programs record is beside it")
        if clock is not None and not callable(clock):
            raise TypeError(f"clock must be a function that gives nanoseconds, not {type(clock).__name__}")
        super().__init__(
            "" if path is None else path,
            memory=memory,
            when_full=when_full,
            flush_every=flush_every,
            follow_forks=follow_forks and path is not None,
            subprocesses=subprocesses,
            overwrite=overwrite,
        )
        self._clock = clock
        self._native_options |= {"timing": True, "own_clock": clock is not None}
        self.start()

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._clock = None
        self._kept = None

    @classmethod
    def from_environment(cls) -> Self | None:
        """Records in a program that a recording one has started, if that said subprocesses=True. None otherwise."""
        timing = super().from_environment()
        if timing is not None:
            _native.timing_start(timing, None)
        return timing

    def start(self) -> Self:
        """Begins to record, which it does when it is made; again, it changes nothing."""
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
        """The file has a name until it is open: then nothing is left of it, however the program ends."""
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
        """The file; "" if it is temporary. In a forked child its own."""
        return super().path if self._kept is None else ""

    def save(self, path: _Path, *, overwrite: bool = False) -> str:
        """Writes what was recorded up to now to a file, which stackweave.open() reads, and gives its name.

        A file that is there is replaced only with overwrite.
        """
        self.flush()
        _native.copy_to_output(self._readable(), path, overwrite)
        return os.fsdecode(path)

    def current(self) -> OpenFrame | None:
        """The phase that the calling thread has begun last, and not ended."""
        frames = self.open_frames()
        return frames[-1] if frames else None

    def open_frames(self) -> list[OpenFrame]:
        """The phases that are open on the calling thread, outermost first."""
        return [OpenFrame(*frame) for frame in _native.timing_open_frames(self)]

    def problems(self) -> Problems:
        """What does not fit together in what was told, in numbers."""
        return Problems(*_native.timing_problems(self))

    def explain_problems(self) -> list[str]:
        """The same in sentences: which phases, how often, and where from. No sentence if all is well."""
        return sentences_of(self.problems(), _native.timing_tally(self), self.open_frames())

    def __repr__(self) -> str:
        where = "in a temporary file" if self._kept is not None else repr(self.path)
        return f"<stackweave.Timing {where}, {self.state}>"

    def _failed(self, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        # The clock of the program's does not say when that was.
        if not self._native_options.get("own_clock"):
            super()._failed(kind, error, traceback)

    def _readable(self) -> str:
        """By what name the file can be opened here."""
        if self._kept is None:
            return self.path
        if not self._kept.is_open():
            raise RecordingError("the temporary file of this timing was closed by the program: give it a path")
        return self._kept.name

    def _files(self) -> _native.OpenedRecording:
        if self._opened_files is not None:
            return self._opened_files
        self.flush()
        files = _native.OpenedRecording([self._readable()])
        if self.state == "stopped":
            self._opened_files = files
        return files

    def _worth_saying(self, sentences: list[str]) -> list[str]:
        is_live = self.state in ("recording", "paused")
        return [sentence for sentence in sentences if not (is_live and "was not closed" in sentence)]

    def _stop_once(self, *, by_program: bool, stacklevel: int) -> Summary:
        summary = super()._stop_once(by_program=by_program, stacklevel=stacklevel and stacklevel + 1)
        if self._kept is not None and summary.path:
            self._summary = summary = summary._replace(path="")
        return summary


class _Unnamed:
    """A file whose name is gone, for as long as this is there."""

    __slots__ = ("_close", "_identity", "_number", "name")

    def __init__(self, path: str) -> None:
        self._number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._identity = identity_of(self._number)
        self._close = os.close
        self.name = f"/proc/self/fd/{self._number}"

    def is_open(self) -> bool:
        """Not if the program has closed files that it did not open."""
        return identity_of(self._number) == self._identity

    def __del__(self, identity: Callable[[int], object] = identity_of) -> None:
        number = getattr(self, "_number", None)
        if number is not None and identity(number) == self._identity:
            self._close(number)


for _public in (OpenFrame, Timing):
    _public.__module__ = "stackweave"
