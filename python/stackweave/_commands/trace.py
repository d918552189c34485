"""`stackweave trace`: runs a program, records its calls, and prints where the recording is."""

from __future__ import annotations

from typing import Any

from .._recorders.trace import TraceRecorder
from .recorded_program import OfProgram, RecordingCommand
from .trace_arguments import SYNTAX


class _ProgramTrace(OfProgram, TraceRecorder):
    __slots__ = ()

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self._leave_out_callers()


def main(command: str, arguments: list[str]) -> int:
    """Returns the exit status, unless the program ends the process itself."""
    return RecordingCommand(SYNTAX, _ProgramTrace).run(command, arguments)
