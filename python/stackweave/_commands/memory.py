"""`stackweave memory`: runs a program, records its memory, and prints what it used."""

from __future__ import annotations

from .._recorders.memory import MemoryRecorder
from .recorded_program import OfProgram, RecordingCommand

WORDS = {"sample_every": "--sample", 'mode="aggregate"': "--aggregate", 'signal.SIGUSR1 or "USR1"': "USR1"}


class _ProgramMemory(OfProgram, MemoryRecorder):
    __slots__ = ()


def main(command: str, arguments: list[str]) -> int:
    """Returns the exit status, unless the program ends the process itself."""
    return RecordingCommand("memory", _ProgramMemory, WORDS).run(command, arguments)
