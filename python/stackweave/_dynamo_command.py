"""`stackweave dynamo`: runs a program, records what torch.compile does in it, and says at the end what that took."""

from __future__ import annotations

from typing import Any

from ._recorded_program import OfProgram, RecordingCommand
from .torch.dynamo import Profile


class ProgramProfile(OfProgram, Profile):
    """The compilations of a whole program."""

    __slots__ = ("is_reported",)

    def __init__(self, path: str, *, report: bool = False, **options: Any) -> None:
        #: Whether the tables are shown at the end.
        self.is_reported = report
        super().__init__(path, **options)


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("dynamo", ProgramProfile).run(command, arguments)
