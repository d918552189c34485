"""`cuda_memory`: a recording of all memory of CUDA devices. Imported when it is first asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from .._memory_options import MEMORY, moments_of
from .._memory_reading import MemoryReading
from .._memory_source import MemorySource
from .._recording_options import MOMENTS
from .._sizes import size_text
from .._trace_options import count_of
from ._cuda_source import ASKED, OUT_OF_MEMORY, CudaSource
from ._say import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    _Moment = Literal["exit", "exception", "memory-error"]


#: In these states what the allocator holds is recorded, if it is asked.
_TELLS = ("recording", "paused")


class CudaMemory(MemoryReading):
    """Every event of PyTorch's CUDA caching allocator, with its stack, from start() to stop(), or in a with statement.

    native has native frames in the stacks, free_stacks records where memory is freed. process=True records the
    process's own memory beside it. When a device runs out of memory what is known is written, oom_dumps times at most:
    with ring to a file of its own beside the recording. ring bounds the history: only the last so many bytes ("64MB")
    of it are kept. What the allocator holds is recorded at the end, at each dump() and when memory runs out.

    It begins before torch has initialised CUDA, if need be, and does not initialise it. The hook in torch is built with
    the C++ compiler of this machine when it is first used. The other options, and what can be asked of it, are those of
    stackweave.memory.
    """

    __slots__ = ("_cuda_source", "_oom_dumps", "_out_of_memories")

    _cuda_source: CudaSource

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        native: bool = True,
        free_stacks: bool = True,
        process: bool = False,
        depth: int | None = None,
        temporary: int = 1,
        curve_every: float = 0.02,
        oom_dumps: int = 4,
        memory: int | str = MEMORY,
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[_Moment] = ("exit", "exception", "memory-error"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
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
            # A child never records CUDA's memory: there is nothing else to record.
            follow_forks=follow_forks and process,
            overwrite=overwrite,
        )
        self._dump_on = moments
        self._oom_dumps = oom_dumps if oom_dumps == 0 else count_of("oom_dumps", oom_dumps)
        self._out_of_memories = 0
        self._memory_source = MemorySource(
            {
                "native": native,
                "free_stacks": free_stacks,
                "mappings": process,
                "own_memory": process,
                "depth": depth,
                "temporary": temporary,
                "curve_every": curve_every,
            }
        )
        self._cuda_source = CudaSource()
        self._sources = (self._memory_source, self._cuda_source)

    def start(self) -> Self:
        """Begins to record."""
        if self.state == "new":
            self._refuse_second()
            self._native_options["extra"] = self._cuda_source.make_ready()
        return super().start()

    def dump(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes what is known up to now, with what the allocator holds, and goes on. Gives the file's name.

        A ring can be written to another file.
        """
        if self.state in _TELLS:
            self._cuda_source.tell_state(ASKED)
        return super().dump(path)

    def hook_stats(self) -> dict[str, int]:
        """How often the program had to wait for this recording, in vain, and devices that began inexactly for that."""
        waits, in_vain, inexact = self._cuda_source.counts()
        return {"waits": waits, "waits_in_vain": in_vain, "inexact": inexact}

    def _dump_quietly(self) -> None:
        if self.state in _TELLS:
            self._cuda_source.tell_state(ASKED)
        super()._dump_quietly()

    def _out_of_memory(self, device: int, asked: int, total: int, free: int) -> None:
        self._out_of_memories += 1
        number = self._out_of_memories
        if number > self._oom_dumps or self.state != "recording":
            return
        self._cuda_source.tell_state(OUT_OF_MEMORY)
        where = self._dump_out_of_memory(number)
        say(
            f"CUDA device {device} is out of memory: {size_text(asked)} were asked for, and "
            f"{size_text(free)} of {size_text(total)} are free. What took it: stackweave heap {where}"
        )

    def _dump_out_of_memory(self, number: int) -> str:
        if self._native_options["ring"] is None:
            return super().dump()
        base = self.path.removesuffix(".swv")
        while True:
            path = f"{base}.oom-{number}.swv"
            # One that another run has left is worth keeping.
            if self._native_options["overwrite"] or not os.path.exists(path):
                return super().dump(path)
            number += self._oom_dumps

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]] | None:
        return None

    def __repr__(self) -> str:
        return f"<stackweave.torch.CudaMemory {self.path!r}, {self.state}>"


CudaMemory.__module__ = "stackweave.torch"
cuda_memory = CudaMemory
