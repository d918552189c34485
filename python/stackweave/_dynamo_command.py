"""`stackweave dynamo`: runs a program, records what torch.compile does in it, and says at the end what that took."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ._recorded_program import Ended, RecordingCommand
from .torch.dynamo import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._command_arguments import Asked


class ProgramProfile(Profile):
    """The compilations of a whole program, whose hooks for exceptions stay as they are."""

    __slots__ = ("is_reported",)

    _watches_exceptions = False

    def __init__(self, path: str, *, report: bool = False, **options: Any) -> None:
        #: Whether the tables are shown at the end.
        self.is_reported = report
        super().__init__(path, **options)

    def _end_source(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what has gone wrong is said in a line of ours
            super()._end_source()


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    return RecordingCommand("dynamo", _parse, ProgramProfile, _lines).run(command, arguments)


def _parse(command: str, arguments: list[str]) -> Asked:
    from ._dynamo_arguments import parse

    return parse(command, arguments)


def _lines(ended: Ended) -> Iterable[str]:
    from ._dynamo_ending import lines

    return lines(ended)
