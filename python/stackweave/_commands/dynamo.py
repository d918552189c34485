"""`stackweave dynamo`: runs a program, records what torch.compile does in it, and prints how long that took."""

from __future__ import annotations

from typing import Any

from ..torch.dynamo import DynamoRecorder
from .dynamo_arguments import SYNTAX
from .recorded_program import OfProgram, RecordingCommand


class ProgramDynamoRecorder(OfProgram, DynamoRecorder):
    """Records the compilations of a whole program."""

    __slots__ = ("is_reported",)

    def __init__(self, path: str, *, report: bool = False, **options: Any) -> None:
        #: Whether the tables are printed at the end.
        self.is_reported = report
        super().__init__(path, **options)


def main(command: str, arguments: list[str]) -> int:
    """Returns the exit status, unless the program ends the process itself."""
    return RecordingCommand(SYNTAX, ProgramDynamoRecorder).run(command, arguments)
