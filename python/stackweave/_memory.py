"""`memory`: a recording of every allocation. Imported when it is first asked for."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, Literal

from . import _hooks, _native, _subprocess
from ._memory_options import MEMORY, SAMPLE_EVERY, check_together, moments_of, recorder_options
from ._memory_reading import MemoryReading
from ._memory_threads import ThreadNames
from ._native import StackweaveError
from ._recording_options import MOMENTS

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

    from ._native import Traceback

    _Moment = Literal["exit", "exception", "memory-error"]

#: Figures of how allocations are seen, which is over when it stops.
_WHILE_ON = ("modules", "slots", "foreign_slots")
#: The one that is on: there can be one at a time.
_current: Memory | None = None


class Memory(MemoryReading):
    """Every allocation of the process, with its stack, in a recording: from start() to stop(), or in a with statement.

    native has native frames in the stacks. python_allocators records blocks of Python's own allocator, too, that is
    each object, and not the arenas that these lie in. mode "history" has every event in the file, "aggregate" only
    figures for each stack, and "sampled" one allocation for every sample_every bytes on average, which costs next to
    nothing and gives estimates. free_stacks records where memory is freed, mappings what mmap gives. depth is how many
    frames of a stack are kept, from the innermost on. A block is temporary if its thread has taken no more than so many
    others before it is freed. The size of the process is recorded every curve_every seconds.

    What is known is written at the moments of dump_on, at dump_signal, and when the process has grown to dump_at_rss
    bytes, so that it can be read whatever happens next. The other options, and what can be asked of it, are those of
    Recording.
    """

    __slots__ = ("_for_others", "_is_unasked", "_recorder_stats", "_thread_names")

    _recorder_stats: dict[str, Any] | None
    _thread_names: ThreadNames
    #: The options that programs record by which are started from here.
    _for_others: dict[str, Any]
    #: Whether the program does not know of it.
    _is_unasked: bool

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        native: bool = True,
        python_allocators: bool = False,
        mode: Literal["history", "aggregate", "sampled"] = "history",
        sample_every: int | str = SAMPLE_EVERY,
        free_stacks: bool = False,
        mappings: bool = True,
        depth: int | None = None,
        temporary: int = 1,
        curve_every: float = 0.02,
        dump_signal: int | str | signal.Signals | None = None,
        dump_at_rss: int | str | None = None,
        memory: int | str = MEMORY,
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[_Moment] = ("exit", "exception", "memory-error"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        moments = moments_of(dump_on)
        super().__init__(
            path,
            memory=memory,
            when_full=when_full,
            ring=ring,
            dump_on=moments.intersection(MOMENTS),  # type: ignore[arg-type]
            flush_every=flush_every,
            follow_forks=follow_forks,
            subprocesses=subprocesses,
            overwrite=overwrite,
        )
        self._dump_on = moments
        self._recorder_options = recorder_options(
            {
                "native": native,
                "python_allocators": python_allocators,
                "mode": mode,
                "sample_every": sample_every,
                "free_stacks": free_stacks,
                "mappings": mappings,
                "depth": depth,
                "temporary": temporary,
                "curve_every": curve_every,
                "dump_signal": dump_signal,
                "dump_at_rss": dump_at_rss,
            }
        )
        check_together(mode, ring)
        self._for_others = {**self._recorder_options, "dump_on": tuple(moments)}

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._recorder_stats = None
        self._thread_names = ThreadNames(self._name_thread)
        self._is_unasked = False

    @classmethod
    def from_environment(cls, **options: Any) -> Self | None:
        """Records in a program that a recording one has started, if that said subprocesses=True. None otherwise.

        options are those of memory() that do not say where and how it is written. A program that was started while
        memory is recorded is recorded anyway, with the options of that: then it is from here on, and with these.
        """
        asked = cls("", **options)
        if _current is not None and _current._is_unasked:
            with _subprocess.unchanged():
                _current._abandon()
        return asked._from_environment()

    @classmethod
    def _record_subprocess(cls, options: dict[str, Any]) -> None:
        """From the start of a program on, which a recorded one has started, and which does not know."""
        memory = cls("", **options)._from_environment()
        if memory is not None:
            memory._is_unasked = True

    def _from_environment(self) -> Self | None:
        self._refuse_second()
        self._native_options["subprocesses"] = True
        if not self._start_from_environment(self._recorder_options):
            return None
        _hooks.started(self)
        self._begin_source()
        return self

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        return "memory", self._for_others

    def start(self) -> Self:
        """Begins to record."""
        if self.state == "new":
            self._refuse_second()
            self._native_options["memory_recorder"] = self._recorder_options
        super().start()
        self._begin_source()
        return self

    def pause(self) -> None:
        """Leaves out what is taken from now on, until resume(). What is freed meanwhile is known."""
        if self.state == "recording" and self._recorder is not None:
            self._recorder.pause()
        super().pause()

    def resume(self) -> None:
        """Records again, after pause()."""
        was_paused = self.state == "paused"
        super().resume()
        if was_paused and self._recorder is not None:
            self._recorder.resume()

    def dump(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes what is known up to now, to be read whatever happens next, and goes on. Gives the file's name.

        A ring can be written to another file.
        """
        if self._native_options["ring"] is not None:
            return super().dump(path)
        if path is not None:
            raise StackweaveError("only a ring can be written to another file: all else is in the recording already")
        if self._recorder is not None:
            self._recorder.write_snapshot()
        self.flush()
        return self.path

    def recorder_stats(self) -> dict[str, Any]:
        """How allocations are seen, and what was left out: numbers by their names."""
        if self._recorder is not None:
            return self._recorder.stats()
        if self._recorder_stats is None:
            raise StackweaveError("nothing was recorded yet: call start(), or use it in a with statement")
        return dict(self._recorder_stats)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        if kind is None:
            self._end_source()
        super().__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<stackweave.Memory {self.path!r}, {self.state}>"

    def _refuse_second(self) -> None:
        if _current is not None:
            raise StackweaveError(f"{_current!r} is on, and there can be one at a time: stop it first")

    def _begin_source(self) -> None:
        """The last thing that is done is to start, so that nothing of ours is recorded."""
        global _current
        try:
            recorder = _native.MemoryRecorder(self, self._recorder_options)
            self._thread_names.start()
            _current, self._recorder, self._began = self, recorder, time.monotonic()
            recorder.start()
        except BaseException:
            self._abandon()
            raise

    def _end_source(self) -> None:
        """The first thing that is done is to stop."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        try:
            before = recorder.stats()
            recorder.stop()
            self._recorder_stats = {**recorder.stats(), **{name: before[name] for name in _WHILE_ON}}
        finally:
            self._leave()

    def _leave(self) -> None:
        global _current
        if _current is self:
            _current = None
        self._thread_names.stop()

    def _abandon(self) -> None:
        """It could not begin, or shall not have begun: no file is left."""
        self._recorder = None
        self._leave()
        self._discard()

    def _forked(self) -> None:
        super()._forked()
        if self._recorder is None or not self._native_options.get("follow_forks", True):
            return
        self._recorder.forked()

    def _failed(self, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        with contextlib.suppress(MemoryError):
            super()._failed(kind, error, traceback)
            moment = "memory-error" if issubclass(kind, MemoryError) else "exception"
            has_dumped = "exception" in self._dump_on and self._native_options["ring"] is not None
            if self._dump_on & {moment, "exception"} and not has_dumped and self.state == "recording":
                self._dump_known()

    def _dump_known(self) -> None:
        with contextlib.suppress(StackweaveError):
            if self._native_options["ring"] is not None:
                self._dump_quietly()
            else:
                self.dump()


def current_recorder() -> _native.MemoryRecorder | None:
    """Whoever records memory just now."""
    return None if _current is None else _current._recorder


def allocation_traceback(address: int, /) -> Traceback | None:
    """Where the block at an address was taken, if it was while memory is recorded, and is not freed."""
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(f"an address must be an int, not {type(address).__name__}")
    recorder = current_recorder()
    block = None if recorder is None else recorder.block(address)
    return None if block is None else block["stack"]


Memory.__module__ = allocation_traceback.__module__ = "stackweave"
memory = Memory
