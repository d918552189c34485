"""`memory`: records every allocation. Imported when it is first used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from .. import _native
from .._options.table import MEMORY_RECORDER
from .live_memory import BaseMemoryRecorder
from .memory_source import MemorySource
from .sources import current_of

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

    from .._native import Traceback
    from .sources import _IfBusy

    _Moment = Literal["exit", "exception", "memory-error"]


class MemoryRecorder(BaseMemoryRecorder):
    """Records every allocation of the process, with its stack: from start() to stop(), or in a with statement.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     blocks = [bytearray(100_000) for _ in range(10)]
    >>> recorder.recording.peak().bytes >= 1_000_000
    True

    native=False leaves native frames out of the stacks. python_allocators=True records the blocks of Python's own
    allocator, which is each object, in place of the arenas that hold them. mode "history" writes every event to the
    file, "aggregate" only figures for each stack, and "sampled" one allocation for every sample_every bytes on average,
    which costs very little and gives estimates. free_stacks records where memory is freed, mappings what mmap maps.
    depth limits the frames of a stack, counted from the innermost. A block is temporary if its thread has made at most
    `temporary` other allocations before it is freed. The size of the process is recorded each curve_every seconds.

    A snapshot is written at the moments of dump_on, at dump_signal, and when the process has grown to dump_at_rss
    bytes, so that it can be read whatever happens next. if_busy is what start() does while another recorder records
    memory: "raise" an error, or "skip" this one, which then records nothing and has the state "skipped". Other options:
    see Recorder. live() has the views of the memory at this moment, while it records.
    """

    __slots__ = ()

    _shown_as = "MemoryRecorder"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        native: bool = True,
        python_allocators: bool = False,
        mode: Literal["history", "aggregate", "sampled"] = "history",
        sample_every: int | str | None = None,
        free_stacks: bool = False,
        mappings: bool = True,
        depth: int | None = None,
        temporary: int = 1,
        curve_every: float = 0.02,
        dump_signal: int | str | signal.Signals | None = None,
        dump_at_rss: int | str | None = None,
        buffer: int | str = "8MiB",
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[_Moment] = ("exit", "exception", "memory-error"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
        if_busy: _IfBusy = "raise",
    ) -> None:
        self._memory_source = MemorySource(self._take(path, MEMORY_RECORDER, locals()))
        self._sources = (self._memory_source,)

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        return "memory", {**self._needed_source().options, "dump_on": tuple(self._dump_on)}


def current_recorder() -> BaseMemoryRecorder | None:
    """Returns the recorder that records memory now."""
    recorder = current_of(MemorySource)
    return recorder if isinstance(recorder, BaseMemoryRecorder) else None


def current_hooks() -> _native.AllocationHooks | None:
    recorder = current_recorder()
    return None if recorder is None else recorder._hooks


def allocation_traceback(address: int, /) -> Traceback | None:
    """Returns where the live block at an address was allocated, if memory was recorded then and is recorded now.

    >>> with stackweave.memory("heap.swv"):
    ...     stackweave.allocation_traceback(0) is None
    True
    """
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(f"an address must be an int, not {type(address).__name__}")
    hooks = current_hooks()
    block = None if hooks is None else hooks.block(address)
    return None if block is None else block["stack"]


MemoryRecorder.__module__ = allocation_traceback.__module__ = "stackweave"
memory = MemoryRecorder
