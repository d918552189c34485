"""`record`: records calls and memory together. Imported when it is first used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from .._native import RecordingError
from .._options.table import RECORD

# Imports the modules that a traced program may call before it is traced.
from . import live_events, native_callbacks  # noqa: F401
from .call_source import CallSource
from .live_memory import BaseMemoryRecorder
from .memory_source import MemorySource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .memory import _Moment
    from .sources import _IfBusy


class CombinedRecorder(BaseMemoryRecorder):
    """Records calls and memory of a program in one file: from start() to stop(), or in a with statement.

    >>> with stackweave.record("both.swv") as recorder:
    ...     main()
    >>> recorder.recording.export("report.html")
    'report.html'

    calls and memory choose what is recorded. Each is True, False, or a dict of options: those of stackweave.trace() and
    of stackweave.memory() that do not say where and how the file is written.

    Its recording has the views of both: stats(), top() and tree() of calls, peak(), leaks() and memory() of memory.
    live() has the views of the memory at this moment, while it records. A snapshot of memory is written at the moments
    of dump_on. if_busy is what start() does while another recorder records calls or memory: "raise" an error, or "skip"
    this one, which then records nothing and has the state "skipped". Other options: see Recorder.
    """

    __slots__ = ("_call_source",)

    _call_source: CallSource | None
    _shown_as = "CombinedRecorder"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        calls: bool | dict[str, Any] = True,
        memory: bool | dict[str, Any] = True,
        buffer: int | str = "32MiB",
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[_Moment] = ("exit", "exception", "memory-error"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
        if_busy: _IfBusy = "raise",
    ) -> None:
        options = self._take(path, RECORD, locals())
        if options["calls"] is None and options["memory"] is None:
            raise ValueError("calls and memory are both False, so nothing would be recorded: leave out one of them")
        if options["calls"] is not None:
            self._call_source = CallSource(options["calls"])
        if options["memory"] is not None:
            self._memory_source = MemorySource({**options["memory"], "ring": options["ring"]})
        # Calls start last and stop first, so that the time of starting and stopping the other source is not recorded.
        self._sources = tuple(each for each in (self._memory_source, self._call_source) if each is not None)

    def tracer_stats(self) -> dict[str, Any]:
        """Returns how calls were recorded, and what was left out, once it is stopped: numbers by their names."""
        if self._call_source is None:
            raise RecordingError("calls were not recorded: record with calls=True")
        return self._call_source.stats()

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._call_source = None

    def _memory_options(self) -> dict[str, Any] | None:
        options = super()._memory_options()
        return None if options is None else {**options, "beside_calls": self._call_source is not None}

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        calls = self._call_source is not None and self._call_source.options
        memory = self._memory_source is not None and self._memory_source.options
        return "record", {"calls": calls, "memory": memory, "dump_on": tuple(self._dump_on)}

    def _leave_out_callers(self) -> None:
        if self._call_source is not None:
            self._call_source.leave_out_callers()


CombinedRecorder.__module__ = "stackweave"
record = CombinedRecorder
