"""`stackweave record`: runs a program, records its calls and memory together, and prints a summary."""

from __future__ import annotations

from typing import Any

from .._recorders.combined import CombinedRecorder
from .record_arguments import SYNTAX
from .recorded_program import OfProgram, RecordingCommand


class _ProgramRecord(OfProgram, CombinedRecorder):
    __slots__ = ()

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self._leave_out_callers()


def main(command: str, arguments: list[str]) -> int:
    """Returns the exit status, unless the program ends the process itself."""
    return RecordingCommand(SYNTAX, _ProgramRecord).run(command, arguments)
