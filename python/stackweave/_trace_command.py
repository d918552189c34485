"""`stackweave trace`: runs a program with a trace around it, and says at the end where the recording is."""

from __future__ import annotations

from typing import Any

from ._recorded_program import OfProgram, RecordingCommand
from ._trace import Trace


class _ProgramTrace(OfProgram, Trace):
    __slots__ = ()

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self._leave_out_callers()


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("trace", _ProgramTrace).run(command, arguments)
