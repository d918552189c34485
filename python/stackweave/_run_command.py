"""`stackweave run`: runs a program, records its calls and its memory together, and says at the end what it has used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._memory_command import WORDS
from ._record import Record
from ._recorded_program import Ended, RecordingCommand

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._command_arguments import Asked


class _ProgramRecord(Record):
    """Calls and memory of a whole program, whose hooks for exceptions stay as they are."""

    __slots__ = ()

    _watches_exceptions = False

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self._leave_out_callers()


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("run", _parse, _ProgramRecord, _lines, WORDS).run(command, arguments)


def _parse(command: str, arguments: list[str]) -> Asked:
    from ._run_arguments import parse

    return parse(command, arguments)


def _lines(ended: Ended) -> Iterable[str]:
    from ._run_ending import lines

    return lines(ended)
