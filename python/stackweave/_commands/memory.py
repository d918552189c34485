"""`stackweave memory`: runs a program, records its memory, and prints what it used."""

from __future__ import annotations

from .._recorders.memory import MemoryRecorder
from .memory_arguments import SYNTAX
from .recorded_program import OfProgram, RecordingCommand


class _ProgramMemory(OfProgram, MemoryRecorder):
    __slots__ = ()


def main(command: str, arguments: list[str]) -> int:
    """Returns the exit status, unless the program ends the process itself."""
    return RecordingCommand(SYNTAX, _ProgramMemory).run(command, arguments)
