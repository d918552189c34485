"""What can be said in the line of a magic: the options of the command of that name, and how it is shown."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ._command_arguments import add_pace, add_ring, output_options
from ._memory_arguments import add_choice_of_memory, add_dumps, options_of_memory
from ._memory_options import MEMORY
from ._notebook_view import View
from ._record import MEMORY_OF_BOTH
from ._recording_options import size_of
from ._trace_arguments import add_choice_of_calls, add_more_of_calls, options_of_calls

if TYPE_CHECKING:
    from collections.abc import Callable

#: Those that there may be.
RECORDERS = ("trace", "memory", "record")
#: A word of a line, with what is quoted in it.
_WORD = re.compile(r"""\s*((?:[^\s"']|"[^"]*"|'[^']*')+)""")


class WrongOption(Exception):
    pass


class AskedCell(NamedTuple):
    #: Where it is kept, if it is.
    output: str | None
    quiet: bool
    view: View
    #: Options of the recording.
    recording: dict[str, Any]
    #: What follows the options.
    rest: str


class AskedReport(NamedTuple):
    file: str
    view: View


class _Parser(argparse.ArgumentParser):
    def __init__(self, name: str) -> None:
        super().__init__(prog=name, add_help=False, allow_abbrev=False)
        group = self.add_argument_group("how it is shown")
        group.add_argument("--height", metavar="PIXELS", type=int, default=600, help="of the report (600)")
        group.add_argument("--top", action="store_true", help="a table of text, and no report")
        group.add_argument("--limit", metavar="SIZE", default="10MB", help="larger reports go to a file (10MB)")

    def error(self, message: str) -> NoReturn:
        raise WrongOption(f"{self.prog}: {message}; see {self.prog.split()[0]}?")

    def view(self, parsed: argparse.Namespace) -> View:
        try:
            limit = size_of("--limit", parsed.limit)
        except (TypeError, ValueError) as error:
            self.error(str(error))
        if parsed.height < 100:
            self.error("--height must be at least 100 pixels")
        return View(parsed.height, parsed.top, limit)


def asked(name: str, line: str) -> AskedCell:
    parser, options_of = _parser(name)
    ours, rest = _split(parser, line)
    parsed = parser.parse_args(ours)
    output = None if parsed.output is None else os.path.expanduser(parsed.output)
    return AskedCell(output, parsed.quiet, parser.view(parsed), options_of(parsed), rest)


def asked_report(line: str) -> AskedReport:
    parser = _Parser("%stackweave_report")
    parser.add_argument("file", metavar="FILE")
    parsed = parser.parse_args(_words(line))
    return AskedReport(parsed.file, parser.view(parsed))


def help_of(name: str) -> str:
    parser, _ = _parser(name)
    what = {"trace": "every call", "memory": "every allocation", "record": "every call and every allocation"}[name]
    head = f"Record {what} of a cell (%%{name}) or a statement (%{name}), and show the report below it."
    options = parser.format_help().partition("\n\n")[2]
    usage = f"%%{name} [options]\n%{name} [options] statement"
    return f"{head}\n\n{usage}\n\n{options}"


def _parser(name: str) -> tuple[_Parser, Callable[[argparse.Namespace], dict[str, Any]]]:
    """That of a command, and what gives the options of its recording."""
    parser = _Parser(f"%{name}")
    has_calls, has_memory = name != "memory", name != "trace"
    where = parser.add_argument_group("where it is recorded")
    where.add_argument("-o", "--output", metavar="FILE", help="keep the recording; else it is gone when it is shown")
    where.add_argument("-q", "--quiet", action="store_true", help="show nothing")
    # It is anyway, if it is a recording; the commands need it.
    where.add_argument("--overwrite", action="store_true", help=argparse.SUPPRESS)
    buffers = {"trace": "64MiB", "memory": MEMORY, "record": MEMORY_OF_BOTH}
    add_pace(where, buffers[name], "--buffer" if has_calls and has_memory else "--memory")
    add_ring(where)
    if has_calls:
        calls = parser.add_argument_group("which calls are recorded")
        add_choice_of_calls(calls)
        add_more_of_calls(calls)
    if has_memory:
        memory = parser.add_argument_group("how memory is recorded")
        add_choice_of_memory(memory)
        add_dumps(memory)

    def options(parsed: argparse.Namespace) -> dict[str, Any]:
        said = {name: value for name, value in output_options(parsed).items() if name != "overwrite"}
        calls = _said(options_of_calls(parsed)) if has_calls else {}
        memory = _said(options_of_memory(parsed)) if has_memory else {}
        if has_calls and has_memory:
            return _said({**said, "memory": None, "buffer": said["memory"]}) | {"calls": calls, "memory": memory}
        return _said(said) | calls | memory

    return parser, options


def _said(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _split(parser: _Parser, line: str) -> tuple[list[str], str]:
    """The options, and the statement behind them as it stands there."""
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
