"""`record`: calls and memory of one run in one recording. Imported when it is first asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

# What a traced program may ask for is there before it does.
from . import _feeding, _live  # noqa: F401
from ._call_source import OPTIONS as OPTIONS_OF_CALLS
from ._call_source import CallSource
from ._memory_options import MEMORY, check_together, moments_of
from ._memory_reading import MemoryReading
from ._memory_source import OPTIONS as OPTIONS_OF_MEMORY
from ._memory_source import MemorySource
from ._native import RecordingError
from ._recording import Recording
from ._recording_options import MEMORY as MEMORY_OF_CALLS
from ._recording_options import MOMENTS, size_of
from ._sources import if_busy_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._memory import _Moment
    from ._sources import _IfBusy

#: More than memory alone has: a burst of calls need not wait.
MEMORY_OF_BOTH = "32MiB"


class Record(MemoryReading):
    """Calls and memory of a program, in one recording: from start() to stop(), or in a with statement.

    calls and memory choose what is recorded. Each is True, False, or a dict of options: those of stackweave.trace() and
    of stackweave.memory() that do not say where and how it is written.

    What can be asked of it is what can be asked of both: stats(), top() and tree() of calls, peak(), leaks(), totals()
    and the other views of memory, which are there while it records, too. buffer is what may wait to be written, as
    bytes or a text like "64MB": what is called memory elsewhere. What is known of memory is written at the moments of
    dump_on. if_busy is what start() does while another one records calls or memory: "raise" an error, or "skip" this
    one, which then records nothing and has the state "skipped". The other options are those of Recording.
    """

    __slots__ = ("_call_source",)

    _call_source: CallSource | None

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        calls: bool | dict[str, Any] = True,
        memory: bool | dict[str, Any] = True,
        buffer: int | str | None = None,
        when_full: Literal["block", "drop"] = "block",
        ring: str | float | tuple[int | str, float] | None = None,
        dump_on: Iterable[_Moment] = ("exit", "exception", "memory-error"),
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
        if_busy: _IfBusy = "raise",
    ) -> None:
        chosen_calls = _chosen("calls", calls, OPTIONS_OF_CALLS)
        chosen_memory = _chosen("memory", memory, OPTIONS_OF_MEMORY)
        if chosen_calls is None and chosen_memory is None:
            raise ValueError("calls and memory are both False, so nothing would be recorded: leave out one of them")
        moments = moments_of(dump_on)
        super().__init__(
            path,
            memory=_buffer(buffer, chosen_calls, chosen_memory),
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
        self._call_source = None if chosen_calls is None else CallSource(chosen_calls)
        if chosen_memory is not None:
            check_together(chosen_memory.get("mode", "history"), ring)
            self._memory_source = MemorySource(chosen_memory)
        # Calls begin last and end first: the time that it takes to begin, and to end, is not the program's.
        self._sources = tuple(each for each in (self._memory_source, self._call_source) if each is not None)

    def tracer_stats(self) -> dict[str, Any]:
        """How calls were seen when it is stopped, and what was left out: numbers by their names."""
        if self._call_source is None:
            raise RecordingError("calls were not recorded here: say calls=True")
        return self._call_source.stats()

    to_arrow = Recording.to_arrow

    def __repr__(self) -> str:
        return f"<stackweave.Record {self.path!r}, {self.state}>"

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._call_source = None

    def _memory_recorder(self) -> dict[str, Any] | None:
        options = super()._memory_recorder()
        return None if options is None else {**options, "beside_calls": self._call_source is not None}

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        calls = self._call_source is not None and self._call_source.for_others
        memory = self._memory_source is not None and self._memory_source.options
        return "record", {"calls": calls, "memory": memory, "dump_on": tuple(self._dump_on)}

    def _leave_out_callers(self) -> None:
        if self._call_source is not None:
            self._call_source.leave_out_callers()


def _chosen(name: str, value: object, options: dict[str, Any]) -> dict[str, Any] | None:
    """The options of what is to be recorded; None if it is not."""
    if value is True or value is False:
        return {} if value else None
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be True, False or a dict of options, not {type(value).__name__}")
    for option in value:
        if option not in options:
            raise ValueError(f"{name} has no option {option!r}: there are {', '.join(options)}")
    return value


def _buffer(asked: int | str | None, calls: object, memory: object) -> int | str:
    if asked is not None:
        return size_of("buffer", asked)
    if calls is None:
        return MEMORY
    return MEMORY_OF_CALLS if memory is None else MEMORY_OF_BOTH


Record.__module__ = "stackweave"
record = Record
