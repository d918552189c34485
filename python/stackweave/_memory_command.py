"""`stackweave memory`: runs a program with a memory recorder around it, and says at the end what it has used."""

from __future__ import annotations

from ._memory import Memory
from ._recorded_program import OfProgram, RecordingCommand

WORDS = {"sample_every": "--sample", 'mode="aggregate"': "--aggregate", 'signal.SIGUSR1 or "USR1"': "USR1"}


class _ProgramMemory(OfProgram, Memory):
    __slots__ = ()


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("memory", _ProgramMemory, WORDS).run(command, arguments)
