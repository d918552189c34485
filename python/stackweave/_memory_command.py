"""`stackweave memory`: runs a program with a memory recorder around it, and says at the end what it has used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._memory import Memory
from ._recorded_program import Ended, RecordingCommand

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._command_arguments import Asked


WORDS = {"sample_every": "--sample", 'mode="aggregate"': "--aggregate", 'signal.SIGUSR1 or "USR1"': "USR1"}


class _ProgramMemory(Memory):
    """The memory of a whole program, whose hooks for exceptions stay as they are."""

    __slots__ = ()

    _watches_exceptions = False


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("memory", _parse, _ProgramMemory, _lines, WORDS).run(command, arguments)


def _parse(command: str, arguments: list[str]) -> Asked:
    from ._memory_arguments import parse

    return parse(command, arguments)


def _lines(ended: Ended) -> Iterable[str]:
    from ._memory_ending import lines

    return lines(ended)
