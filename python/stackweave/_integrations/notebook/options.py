"""The options in the line of a magic: those of the command of that name, and how the report is shown."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..._commands.arguments import add_options, given_options, sentence
from ..._options.kinds import whole_number
from ..._options.option import by_parts
from ..._options.table import CALLS, EVENTS, MEMORY, PARTS, SNAPSHOTS, WRITE, WRITE_BOTH, WRITE_MEMORY
from ..._sizes import size_of
from .view import View

if TYPE_CHECKING:
    from ..._options.option import Group, Option

#: The magics, with their options: for how the file is written, and others.
RECORDERS: dict[str, tuple[tuple[Option, ...], tuple[Group, ...]]] = {
    "trace": (WRITE, (CALLS, EVENTS)),
    "memory": (WRITE_MEMORY, (MEMORY, SNAPSHOTS)),
    "record": (WRITE_BOTH, (PARTS, CALLS, EVENTS, MEMORY, SNAPSHOTS)),
}
#: A word of a line, with the quoted parts in it.
_WORD = re.compile(r"""\s*((?:[^\s"']|"[^"]*"|'[^']*')+)""")


class WrongOption(Exception):
    pass


class CellRequest(NamedTuple):
    """What the line of a magic requests."""

    #: The file that keeps the recording, if it is kept.
    output: str | None
    quiet: bool
    view: View
    #: Options of the recorder.
    recorder: dict[str, Any]
    #: The text after the options.
    rest: str


class ReportRequest(NamedTuple):
    file: str
    view: View


class _Parser(argparse.ArgumentParser):
    def __init__(self, name: str) -> None:
        super().__init__(prog=name, add_help=False, allow_abbrev=False)
        group = self.add_argument_group("How it is shown")
        group.add_argument("--height", metavar="PIXELS", type=whole_number, default=600, help="of the report (600)")
        group.add_argument("--top", action="store_true", help="a table of text, and no report")
        group.add_argument("--max-size", metavar="SIZE", default="10MB", help="larger reports go to a file (10MB)")

    def error(self, message: str) -> NoReturn:
        raise WrongOption(f"{self.prog}: {sentence(message)}; see {self.prog.split()[0]}?")

    def view(self, parsed: argparse.Namespace) -> View:
        try:
            max_size = size_of("--max-size", parsed.max_size)
        except (TypeError, ValueError) as error:
            self.error(str(error))
        if parsed.height < 100:
            self.error("--height must be at least 100 pixels")
        return View(parsed.height, parsed.top, max_size)


def parse_cell(name: str, line: str) -> CellRequest:
    parser = _parser(name)
    ours, rest = _split(parser, line)
    parsed = parser.parse_args(ours)
    output = None if parsed.output is None else os.path.expanduser(parsed.output)
    writing, groups = RECORDERS[name]
    options = given_options(writing + tuple(option for group in groups for option in group.options), parsed)
    options.pop("overwrite", None)
    try:
        arranged = by_parts(options) if name == "record" else options
    except ValueError as error:
        parser.error(str(error))
    return CellRequest(output, parsed.quiet, parser.view(parsed), arranged, rest)


def parse_report(line: str) -> ReportRequest:
    parser = _Parser("%stackweave_report")
    parser.add_argument("file", metavar="FILE")
    parsed = parser.parse_args(_words(line))
    return ReportRequest(parsed.file, parser.view(parsed))


def help_of(name: str) -> str:
    parser = _parser(name)
    what = {"trace": "every call", "memory": "every allocation", "record": "every call and every allocation"}[name]
    head = f"Record {what} of a cell (%%{name}) or a statement (%{name}), and show the report below it."
    options = parser.format_help().partition("\n\n")[2]
    usage = f"%%{name} [options]\n%{name} [options] statement"
    return f"{head}\n\n{usage}\n\n{options}"


def _parser(name: str) -> _Parser:
    writing, groups = RECORDERS[name]
    parser = _Parser(f"%{name}")
    where = parser.add_argument_group("Where it is recorded")
    where.add_argument("-o", "--output", metavar="FILE", help="keep the recording in this file")
    where.add_argument("-q", "--quiet", action="store_true", help="show nothing")
    # A recording is always replaced; the commands have the option.
    where.add_argument("--overwrite", action="store_true", help=argparse.SUPPRESS)
    add_options(where, tuple(option for option in writing if option.name != "overwrite"))
    for group in groups:
        add_options(parser.add_argument_group(group.title), group.options)
    return parser


def _split(parser: _Parser, line: str) -> tuple[list[str], str]:
    """Returns the options, and the text of the statement after them."""
    place = 0
    ours: list[str] = []
    while True:
        found = _WORD.match(line, place)
        if found is None or not found[1].startswith("-"):
            return ours, line[place:].strip()
        if found[1] == "--":
            return ours, line[found.end() :].strip()
        action = parser._option_string_actions.get(found[1].split("=")[0])
        if action is None and not re.match(r"--?[a-z]", found[1]):
            return ours, line[place:].strip()
        ours += _words(found[1])
        place = found.end()
        if action is not None and action.nargs is None and "=" not in found[1]:
            value = _WORD.match(line, place)
            if value is not None:
                ours += _words(value[1])
                place = value.end()


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise WrongOption(f"the options can't be read: {error}") from None
