"""What can be asked of `stackweave trace`."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from ._program import Program

USAGE = "%(prog)s [options] (script.py | -m module | -c code) [arguments ...]"
DESCRIPTION = """\
Run a Python program, and record every call that it makes. The program notices nothing: its arguments,
its output, its exit status and its signals are those of a plain run."""
EXAMPLES = """\
examples:
  stackweave trace train.py --epochs 2            record train.py with its arguments
  stackweave trace -o run.swv -m pytest tests     record a module, to run.swv
  stackweave trace --demote --min-duration 10us app.py
                                                  leave out what takes no time
  stackweave trace --include 'file:*/models/*' --arguments models.net.forward train.py
                                                  only some files; argument values of one function
  stackweave trace --ring 64MB server.py          keep the last moments only

PATTERN is a part of a name, or module:NAME, file:NAME or function:NAME, with * and ? for any text and character.
TIME is a number of seconds or 10us, 1.5ms; SIZE is a number of bytes or 64MB, 1GiB.

then:
  stackweave top FILE                             the functions that cost most
  stackweave tree FILE                            who called whom
  stackweave export FILE -o trace.pftrace         for ui.perfetto.dev; also pstats, flame graphs and nine more"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"stackweave trace: {message}; see {self.prog} --help\n")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


class Asked:
    """What was asked for."""

    def __init__(self, options: argparse.Namespace, program: Program) -> None:
        self.program = program
        self.output: str | None = options.output
        self.quiet: bool = options.quiet
        self.trace_options = _trace_options(options)


def parse(command: str, arguments: list[str]) -> Asked:
    """Ends the process, with a sentence, if something is wrong."""
    parser = _parser(command)
    options, rest = _split(parser, arguments)
    parsed = parser.parse_args(options)
    program = _program(parser, rest)
    return Asked(parsed, program)


def _parser(command: str) -> _Parser:
    parser = _Parser(
        prog=f"{command} trace",
        usage=USAGE,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    _add_output(parser.add_argument_group("where it is recorded"))
    _add_choice(parser.add_argument_group("what is recorded"))
    _add_more(parser.add_argument_group("what else is recorded"))
    return parser


def _add_output(group: Any) -> None:
    group.add_argument("-o", "--output", metavar="FILE", help="the recording; else PROGRAM.PID.swv in this folder")
    group.add_argument("--overwrite", action="store_true", help="replace the file if it is there")
    group.add_argument("-q", "--quiet", action="store_true", help="say nothing at the end")
    group.add_argument(
        "--ring", metavar="SIZE|SECONDS", help="keep only the last so many bytes, seconds, or both: 64MB,30"
    )
    group.add_argument("--memory", metavar="SIZE", help="what may wait to be written (64MiB)")
    group.add_argument("--when-full", choices=("block", "drop"), help="then wait, or leave out and count (block)")
    group.add_argument("--flush-every", metavar="SECONDS", type=float, help="how often it is written (0.2)")
    group.add_argument("--no-follow-forks", action="store_true", help="do not record forked children")
    group.add_argument("--subprocesses", action="store_true", help="let programs that it starts record as well")


def _add_choice(group: Any) -> None:
    group.add_argument("--include", metavar="PATTERN", action="append", help="only these functions; may be repeated")
    group.add_argument("--exclude", metavar="PATTERN", action="append", help="not these functions; may be repeated")
    group.add_argument("--min-duration", metavar="TIME", help="leave out calls that take less")
    group.add_argument("--max-depth", metavar="NUMBER", type=int, help="leave out calls deeper than that")
    group.add_argument("--max-events", metavar="NUMBER", type=int, help="record so many, and count the rest")
    group.add_argument("--demote", action="store_true", help="stop tracing functions that are called often for no time")
    group.add_argument(
        "--demote-after", metavar="CALLS,TIME", help="the same: after so many calls that take less (10000,1us)"
    )
    group.add_argument(
        "--mechanism",
        choices=("auto", "monitoring", "eval", "profile"),
        help="how the interpreter tells of calls (auto)",
    )


def _add_more(group: Any) -> None:
    group.add_argument("--c-calls", action="store_true", help="functions that are written in C")
    group.add_argument(
        "--arguments", metavar="FUNCTION", action="append", help="values of arguments: pkg.module.function"
    )
    group.add_argument(
        "--native-stacks", metavar="FUNCTION", action="append", help="native stacks where these are called"
    )
    group.add_argument("--logs", action="store_true", help="log records")
    group.add_argument("--logger", metavar="NAME", help="log records of this logger")
    group.add_argument("--log-level", metavar="LEVEL", help="log records from this level on: INFO")
    group.add_argument("--no-gc", action="store_true", help="no collections of garbage")
    group.add_argument("--no-tasks", action="store_true", help="no names of asyncio tasks")
    group.add_argument("--no-torch", action="store_true", help="no names of modules and optimizers of torch")


def _split(parser: _Parser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and what begins with the program: all that follows is the program's."""
    place = 0
    while place < len(arguments):
        argument = arguments[place]
        if argument == "--":
            return arguments[:place], arguments[place + 1 :]
        if not argument.startswith("-") or argument == "-" or (argument[:2] in ("-m", "-c")):
            return arguments[:place], arguments[place:]
        place += 2 if _takes_value(parser, argument) else 1
    return arguments, []


def _takes_value(parser: _Parser, argument: str) -> bool:
    action = parser._option_string_actions.get(argument)
    return action is not None and action.nargs is None


def _program(parser: _Parser, rest: list[str]) -> Program:
    if not rest:
        parser.error("nothing to run was named: a script, -m module or -c code")
    flag, joined = rest[0][:2], rest[0][2:]
    if flag not in ("-m", "-c"):
        return Program("file", rest[0], rest[1:])
    values = [joined, *rest[1:]] if joined else rest[1:]
    if not values:
        parser.error(f"{flag} needs {'the name of a module' if flag == '-m' else 'code'} after it")
    return Program("module" if flag == "-m" else "code", values[0], values[1:])


def _trace_options(options: argparse.Namespace) -> dict[str, Any]:
    """As stackweave.trace() takes them; what was not said is left out."""
    said: dict[str, Any] = {
        "ring": _ring(options.ring),
        "demote": _demotion(options.demote_after) if options.demote_after else options.demote or None,
        "logs": _logs(options),
    }
    for name in ("memory", "when_full", "flush_every", "include", "exclude", "max_depth", "max_events", "mechanism"):
        said[name] = getattr(options, name)
    for name in ("arguments", "native_stacks"):
        said[name] = getattr(options, name)
    said["min_duration"] = _number_or_text(options.min_duration)
    for name in ("overwrite", "c_calls", "subprocesses"):
        said[name] = getattr(options, name) or None
    for name in ("gc", "tasks", "torch", "follow_forks"):
        said[name] = False if getattr(options, f"no_{name}") else None
    return {name: value for name, value in said.items() if value is not None}


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _ring(text: str | None) -> object:
    if text is None or "," not in text:
        return _number_or_text(text)
    size, seconds = text.split(",", 1)
    return size, _number_or_text(seconds)


def _demotion(text: str) -> tuple[object, ...]:
    calls, _, time = text.partition(",")
    return (int(calls) if calls.isdigit() else calls, _number_or_text(time))


def _logs(options: argparse.Namespace) -> object:
    if options.log_level is None:
        return options.logger or options.logs or None
    level = int(options.log_level) if options.log_level.isdigit() else options.log_level.upper()
    return options.logger or "", level
