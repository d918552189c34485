"""The arguments that the commands that run a program share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from .program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._options.option import Group, Option


LIVE = """show the recording on the terminal while the program runs; its output follows at the end, and it can't read
from the terminal"""


def _as_given(options: dict[str, Any]) -> dict[str, Any]:
    return options


class Syntax(NamedTuple):
    """The help and the options of a command that runs a program."""

    name: str
    description: str
    examples: str
    #: The options for how the file is written, and others.
    writing: tuple[Option, ...]
    groups: tuple[Group, ...]
    can_be_live: bool = True
    #: Arranges the options for the recorder. Raises ValueError where they contradict each other.
    arranged: Callable[[dict[str, Any]], dict[str, Any]] = _as_given

    @property
    def options(self) -> tuple[Option, ...]:
        return self.writing + tuple(option for group in self.groups for option in group.options)


class Parser(argparse.ArgumentParser):
    """Ends the process with one sentence if an argument is wrong."""

    def __init__(self, command: str, syntax: Syntax) -> None:
        super().__init__(
            prog=f"{command} {syntax.name}",
            usage="%(prog)s [options] (script.py | -m module | -c code) [arguments ...]",
            description=syntax.description,
            epilog=syntax.examples,
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        self._name = syntax.name
        self._optionals.title = "Options"

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"stackweave {self._name}: {sentence(message)}; see {self.prog} --help\n")


def sentence(message: str) -> str:
    """Returns a message of argparse without its "argument" before the name of an option."""
    return message.removeprefix("argument ")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Returns "-o, --output FILE", or "--demote[=CALLS,TIME]" where the value may be left out."""
        flags = ", ".join(action.option_strings)
        if action.nargs == 0 or action.metavar is None:
            return flags
        return f"{flags}[={action.metavar}]" if action.nargs == "?" else f"{flags} {action.metavar}"


class Request:
    """The program, and the options of the command and of the recorder."""

    def __init__(self, parsed: argparse.Namespace, program: Program, options: dict[str, Any]) -> None:
        self.program = program
        self.output: str | None = parsed.output
        self.quiet: bool = parsed.quiet
        self.live: bool = getattr(parsed, "live", False)
        #: The options of the recorder that were given.
        self.options = options


def parse(syntax: Syntax, command: str, arguments: list[str]) -> Request:
    """Returns what the arguments request. Ends the process with a sentence if one is wrong."""
    parser = parser_of(syntax, command)
    ours, rest = _split(parser, arguments)
    parsed = parser.parse_args(ours)
    program = _program(parser, rest)
    try:
        return Request(parsed, program, syntax.arranged(given_options(syntax.options, parsed)))
    except ValueError as error:
        parser.error(str(error))


def parser_of(syntax: Syntax, command: str) -> Parser:
    parser = Parser(command, syntax)
    where = parser.add_argument_group("Where it is recorded")
    where.add_argument(
        "-o", "--output", metavar="FILE", help="write the recording to this file (PROGRAM.PID.swv in this folder)"
    )
    where.add_argument("-q", "--quiet", action="store_true", help="print nothing at the end")
    if syntax.can_be_live:
        where.add_argument("--live", action="store_true", help=LIVE)
    add_options(where, syntax.writing)
    for group in syntax.groups:
        add_options(parser.add_argument_group(group.title), group.options)
    return parser


def add_options(group: Any, options: tuple[Option, ...]) -> None:
    """Adds those options that commands have. What is not given is None."""
    for option in options:
        if option.in_commands:
            text = option.help_text.replace("%", "%%")
            group.add_argument(option.flag, dest=option.name, help=text, **option.kind.argument(option.default))


def given_options(options: Iterable[Option], parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns the keywords for the options that were given."""
    values = ((option.name, getattr(parsed, option.name, None)) for option in options)
    return {name: value for name, value in values if value is not None}


def _split(parser: Parser, arguments: list[str]) -> tuple[list[str], list[str]]:
    place = 0
    while place < len(arguments):
        argument = arguments[place]
        if argument == "--":
            return arguments[:place], arguments[place + 1 :]
        if not argument.startswith("-") or argument == "-" or (argument[:2] in ("-m", "-c")):
            return arguments[:place], arguments[place:]
        place += 2 if _takes_value(parser, argument) else 1
    return arguments, []


def _takes_value(parser: Parser, argument: str) -> bool:
    action = parser._option_string_actions.get(argument)
    return action is not None and action.nargs is None


def _program(parser: Parser, rest: list[str]) -> Program:
    if not rest:
        parser.error("no program was given: name a script, -m module or -c code")
    flag, joined = rest[0][:2], rest[0][2:]
    if flag not in ("-m", "-c"):
        return Program("file", rest[0], rest[1:])
    values = [joined, *rest[1:]] if joined else rest[1:]
    if not values:
        parser.error(f"{flag} needs {'the name of a module' if flag == '-m' else 'code'} after it")
    return Program("module" if flag == "-m" else "code", values[0], values[1:])
