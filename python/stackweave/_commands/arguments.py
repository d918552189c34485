"""The arguments that the commands that run a program share."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from .program import Program


class Parser(argparse.ArgumentParser):
    """Ends the process with one sentence if an argument is wrong."""

    def __init__(self, command: str, name: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"{command} {name}",
            usage="%(prog)s [options] (script.py | -m module | -c code) [arguments ...]",
            description=description,
            epilog=examples,
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        self._name = name

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"stackweave {self._name}: {message}; see {self.prog} --help\n")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


class Request:
    """The program, and the options of the command and of the recorder."""

    def __init__(self, parsed: argparse.Namespace, program: Program, options: dict[str, Any]) -> None:
        self.program = program
        self.output: str | None = parsed.output
        self.quiet: bool = parsed.quiet
        self.live: bool = getattr(parsed, "live", False)
        #: The options of the recorder that were given.
        self.options = {name: value for name, value in options.items() if value is not None}


def parse(parser: Parser, arguments: list[str]) -> tuple[argparse.Namespace, Program]:
    """Returns the options of the command, and the program with the arguments after its name."""
    ours, rest = _split(parser, arguments)
    return parser.parse_args(ours), _program(parser, rest)


def add_output(group: Any, buffer: str = "64MiB") -> None:
    """Adds the options of recordings that may be rings, and can be shown live."""
    add_writing(group, buffer)
    add_ring(group)
    group.add_argument(
        "--live",
        action="store_true",
        help="show the recording on the terminal while the program runs; its output follows at the end, and it can't"
        " read from the terminal",
    )


def add_writing(group: Any, buffer: str = "64MiB") -> None:
    """Adds the options for the file."""
    group.add_argument(
        "-o", "--output", metavar="FILE", help="write the recording to this file (PROGRAM.PID.swv in this folder)"
    )
    group.add_argument("--overwrite", action="store_true", help="replace an existing file")
    group.add_argument("-q", "--quiet", action="store_true", help="print nothing at the end")
    add_pace(group, buffer)


def add_ring(group: Any) -> None:
    group.add_argument("--ring", metavar="SIZE|SECONDS", help="keep only the last bytes, seconds, or both: 64MB,30")


def add_pace(group: Any, buffer: str) -> None:
    """Adds the options for how the file is written and which processes are recorded."""
    group.add_argument(
        "--buffer", metavar="SIZE", help=f"keep at most this much in memory before it is written ({buffer})"
    )
    group.add_argument(
        "--when-full",
        choices=("block", "drop"),
        help="if the buffer is full, wait, or leave out events and count them (block)",
    )
    group.add_argument("--flush-every", metavar="SECONDS", type=float, help="write to the file at this interval (0.2)")
    group.add_argument("--no-follow-forks", action="store_true", help="do not record forked children")
    group.add_argument("--subprocesses", action="store_true", help="record the Python programs that it starts, too")


def output_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of add_output() for a recorder."""
    return {**writing_options(parsed), "ring": _ring(parsed.ring)}


def writing_options(parsed: argparse.Namespace) -> dict[str, Any]:
    return {
        "buffer": parsed.buffer,
        "when_full": parsed.when_full,
        "flush_every": parsed.flush_every,
        "overwrite": parsed.overwrite or None,
        "follow_forks": False if parsed.no_follow_forks else None,
        "subprocesses": parsed.subprocesses or None,
    }


def number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _ring(text: str | None) -> object:
    if text is None or "," not in text:
        return number_or_text(text)
    size, seconds = text.split(",", 1)
    return size, number_or_text(seconds)


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
