"""`stackweave run`: runs a program, records its calls and its memory together, and says at the end what it has used."""

from __future__ import annotations

from typing import Any

from ._memory_command import WORDS
from ._record import Record
from ._recorded_program import OfProgram, RecordingCommand


class _ProgramRecord(OfProgram, Record):
    __slots__ = ()

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self._leave_out_callers()


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("run", _ProgramRecord, WORDS).run(command, arguments)
