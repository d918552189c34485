"""`cuda_memory`: records all memory of CUDA devices. Imported when it is first used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from ..._messages import print_message
from ..._options.table import CUDA_MEMORY
from ..._recorders.live_memory import BaseMemoryRecorder
from ..._recorders.memory_source import MemorySource
from ..._sizes import size_text
from .source import DUMP, OUT_OF_MEMORY, CudaSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from ..._recorders.sources import _IfBusy

    _Moment = Literal["exit", "exception", "memory-error"]


#: The states of the recorder in which the state of the allocator can be recorded.
_ACTIVE = ("recording", "paused")


class CudaMemoryRecorder(BaseMemoryRecorder):
    """Records every event of PyTorch's CUDA caching allocator, with its stack.

    It records from start() to stop(), or in a with statement.

    >>> with stackweave.torch.cuda_memory("gpu.swv") as recorder:  # doctest: +SKIP
    ...     main()
    >>> print(recorder.recording.memory().devices())  # doctest: +SKIP

    native=False leaves native frames out of the stacks, free_stacks records where memory is freed. host_memory=True
    records the memory of the process, too. When a device runs out of memory a snapshot is written, at most oom_dumps
    times: with ring to a file of its own beside the recording. ring limits the history to the last bytes ("64MB"). The
    state of the allocator is recorded at the end, at each dump() and when memory runs out.

    It can begin before torch has initialised CUDA, and does not initialise it. The hook in torch is built with the C++
    compiler of this machine when it is first used. Other options: see stackweave.memory.
    """

    __slots__ = ("_cuda_source", "_oom_dumps", "_out_of_memories")

    _cuda_source: CudaSource
    _shown_as = "torch.CudaMemoryRecorder"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        native: bool = True,
        free_stacks: bool = True,
        host_memory: bool = False,
        depth: int | None = None,
        temporary: int = 1,
        curve_every: float = 0.02,
        oom_dumps: int = 4,
        buffer: int | str = "8MiB",
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[_Moment] = ("exit", "exception", "memory-error"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        overwrite: bool = False,
        if_busy: _IfBusy = "raise",
    ) -> None:
        options = self._take(path, CUDA_MEMORY, locals())
        # A child never records CUDA's memory: there is nothing else to record.
        self._native_options["follow_forks"] = follow_forks and host_memory
        self._oom_dumps = options["oom_dumps"]
        self._out_of_memories = 0
        self._memory_source = MemorySource({"mappings": host_memory, **options}, own_memory=host_memory)
        self._cuda_source = CudaSource()
        self._sources = (self._memory_source, self._cuda_source)

    def start(self) -> Self:
        """Starts to record."""
        if self.state == "new":
            self._refuse_second()
            self._native_options["extra"] = self._cuda_source.make_ready()
        return super().start()

    def dump(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes a snapshot, with the state of the allocator, and continues. Returns the name of the file.

        Only a ring can be written to another file.
        """
        if self.state in _ACTIVE:
            self._cuda_source.record_state(DUMP)
        return super().dump(path)

    def hook_stats(self) -> dict[str, int]:
        """Returns how often the program waited for this recorder, waited in vain, and devices that began inexactly."""
        waits, in_vain, inexact = self._cuda_source.counts()
        return {"waits": waits, "waits_in_vain": in_vain, "inexact": inexact}

    def _dump_quietly(self) -> None:
        if self.state in _ACTIVE:
            self._cuda_source.record_state(DUMP)
        super()._dump_quietly()

    def _out_of_memory(self, device: int, requested: int, total: int, free: int) -> None:
        self._out_of_memories += 1
        number = self._out_of_memories
        if number > self._oom_dumps or self.state != "recording":
            return
        self._cuda_source.record_state(OUT_OF_MEMORY)
        where = self._dump_out_of_memory(number)
        print_message(
            f"CUDA device {device} is out of memory: {size_text(requested)} were requested, and "
            f"{size_text(free)} of {size_text(total)} are free. What is in use: stackweave heap {where}"
        )

    def _dump_out_of_memory(self, number: int) -> str:
        if self._native_options["ring"] is None:
            return super().dump()
        base = self.path.removesuffix(".swv")
        while True:
            path = f"{base}.oom-{number}.swv"
            # The file of another run is kept.
            if self._native_options["overwrite"] or not os.path.exists(path):
                return super().dump(path)
            number += self._oom_dumps

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]] | None:
        return None


CudaMemoryRecorder.__module__ = "stackweave.torch"
cuda_memory = CudaMemoryRecorder
