"""`memory`: a recording of every allocation. Imported when it is first asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._memory_options import MEMORY, SAMPLE_EVERY, check_together, moments_of
from ._memory_reading import MemoryReading
from ._memory_source import MemorySource
from ._recording_options import MOMENTS
from ._sources import current_of, if_busy_of

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

    from ._native import Traceback
    from ._sources import _IfBusy

    _Moment = Literal["exit", "exception", "memory-error"]


class Memory(MemoryReading):
    """Every allocation of the process, with its stack, in a recording: from start() to stop(), or in a with statement.

    native has native frames in the stacks. python_allocators records blocks of Python's own allocator, too, that is
    each object, and not the arenas that these lie in. mode "history" has every event in the file, "aggregate" only
    figures for each stack, and "sampled" one allocation for every sample_every bytes on average, which costs next to
    nothing and gives estimates. free_stacks records where memory is freed, mappings what mmap gives. depth is how many
    frames of a stack are kept, from the innermost on. A block is temporary if its thread has taken no more than so many
    others before it is freed. The size of the process is recorded every curve_every seconds.

    What is known is written at the moments of dump_on, at dump_signal, and when the process has grown to dump_at_rss
    bytes, so that it can be read whatever happens next. if_busy is what start() does while another one records memory:
    "raise" an error, or "skip" this one, which then records nothing and has the state "skipped". The other options, and
    what can be asked of it, are those of Recording.
    """

    __slots__ = ()

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
        if_busy: _IfBusy = "raise",
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
        self._if_busy = if_busy_of(if_busy)
        self._dump_on = moments
        check_together(mode, ring)
        self._memory_source = MemorySource(
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
        self._sources = (self._memory_source,)

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        return "memory", {**self._needed_source().options, "dump_on": tuple(self._dump_on)}

    def __repr__(self) -> str:
        return f"<stackweave.Memory {self.path!r}, {self.state}>"


def current_recording() -> MemoryReading | None:
    """The one that records memory just now."""
    recording = current_of(MemorySource)
    return recording if isinstance(recording, MemoryReading) else None


def current_recorder() -> _native.MemoryRecorder | None:
    recording = current_recording()
    return None if recording is None else recording._recorder


def allocation_traceback(address: int, /) -> Traceback | None:
    """Where the block at an address was taken, if it was while memory is recorded, and is not freed."""
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(f"an address must be an int, not {type(address).__name__}")
    recorder = current_recorder()
    block = None if recorder is None else recorder.block(address)
    return None if block is None else block["stack"]


Memory.__module__ = allocation_traceback.__module__ = "stackweave"
memory = Memory
