"""`stackweave trace`: runs a program with a trace around it, and says at the end where the recording is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._recorded_program import Ended, RecordingCommand
from ._trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._command_arguments import Asked


class _ProgramTrace(Trace):
    """The trace of a whole program, whose hooks for exceptions stay as they are."""

    __slots__ = ()

    _watches_exceptions = False

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self._leave_out_callers()


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("trace", _parse, _ProgramTrace, _lines).run(command, arguments)


def _parse(command: str, arguments: list[str]) -> Asked:
    from ._trace_arguments import parse

    return parse(command, arguments)


def _lines(ended: Ended) -> Iterable[str]:
    from ._trace_ending import lines

    return lines(ended)
