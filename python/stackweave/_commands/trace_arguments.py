"""The arguments of `stackweave trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arguments import Parser, Request, add_output, number_or_text, output_options
from .arguments import parse as parse_with

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Record every call that a Python program makes: caller and callee, when, and how long it took.
The program is not affected: its arguments, output, exit status and signals are those of a plain run."""
EXAMPLES = """\
Examples:
  stackweave trace train.py --epochs 2            record train.py with its arguments
  stackweave trace -o run.swv -m pytest tests     record a module, to run.swv
  stackweave trace --demote --min-duration 10us app.py
                                                  leave out calls that take almost no time
  stackweave trace --include 'file:*/models/*' --arguments models.net.forward train.py
                                                  record only some files, and the argument values of one function
  stackweave trace --ring 64MB server.py          keep only the last 64 MB

PATTERN is a part of a name, or module:NAME, file:NAME or function:NAME, with * and ? for any text and
character; function:=NAME is exactly that name.
TIME is a number of seconds or 10us, 1.5ms; SIZE is a number of bytes or 64MB, 1GiB.

Then:
  stackweave report FILE                          one page with everything: flame graphs, timeline, sources
  stackweave top FILE                             the functions with the highest cost; also tree and flame
  stackweave export FILE -o trace.pftrace         for ui.perfetto.dev; also pstats, flame graphs and nine others"""


def parse(command: str, arguments: list[str]) -> Request:
    """Ends the process with a sentence if an argument is wrong."""
    parser = Parser(command, "trace", DESCRIPTION, EXAMPLES)
    add_output(parser.add_argument_group("where it is recorded"))
    add_choice_of_calls(parser.add_argument_group("what is recorded"))
    add_more_of_calls(parser.add_argument_group("what else is recorded"))
    parsed, program = parse_with(parser, arguments)
    return Request(parsed, program, output_options(parsed) | options_of_calls(parsed))


def add_choice_of_calls(group: Any) -> None:
    group.add_argument(
        "--include", metavar="PATTERN", action="append", help="record only these functions; may be repeated"
    )
    group.add_argument(
        "--exclude", metavar="PATTERN", action="append", help="do not record these functions; may be repeated"
    )
    group.add_argument("--min-duration", metavar="TIME", help="leave out calls that take less than this")
    group.add_argument("--max-depth", metavar="NUMBER", type=int, help="leave out calls deeper than this many levels")
    group.add_argument(
        "--max-events", metavar="NUMBER", type=int, help="record at most this many events, and count the rest"
    )
    group.add_argument(
        "--demote", action="store_true", help="stop tracing functions that are called often and take almost no time"
    )
    group.add_argument(
        "--demote-after",
        metavar="CALLS,TIME",
        help="do the same after CALLS calls that each take less than TIME (10000,1us)",
    )
    group.add_argument(
        "--mechanism",
        choices=("auto", "monitoring", "eval", "profile"),
        help="choose how the interpreter reports calls (auto)",
    )


def add_more_of_calls(group: Any) -> None:
    group.add_argument("--c-calls", action="store_true", help="record calls of functions that are written in C")
    group.add_argument(
        "--arguments",
        metavar="FUNCTION",
        action="append",
        help="record the argument values of this function: pkg.module.function; may be repeated",
    )
    group.add_argument(
        "--native-stacks",
        metavar="FUNCTION",
        action="append",
        help="record native stacks where this function is called; may be repeated",
    )
    group.add_argument("--logs", action="store_true", help="record the log records of the program")
    group.add_argument("--logger", metavar="NAME", help="record the log records of this logger")
    group.add_argument("--log-level", metavar="LEVEL", help="record log records from this level on: INFO")
    group.add_argument("--no-gc", action="store_true", help="do not record garbage collections")
    group.add_argument("--no-tasks", action="store_true", help="do not record the names of asyncio tasks")
    group.add_argument(
        "--no-torch", action="store_true", help="do not record the names of torch modules and optimizers"
    )


def options_of_calls(parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of stackweave.trace()."""
    options: dict[str, Any] = {}
    options["demote"] = _demotion(parsed.demote_after) if parsed.demote_after else parsed.demote or None
    options["logs"] = _logs(parsed)
    options["min_duration"] = number_or_text(parsed.min_duration)
    options["c_calls"] = parsed.c_calls or None
    for name in ("include", "exclude", "max_depth", "max_events", "mechanism", "arguments", "native_stacks"):
        options[name] = getattr(parsed, name)
    for name in ("gc", "tasks", "torch"):
        options[name] = False if getattr(parsed, f"no_{name}") else None
    return options


def _demotion(text: str) -> tuple[object, ...]:
    calls, _, time = text.partition(",")
    return (int(calls) if calls.isdigit() else calls, number_or_text(time))


def _logs(parsed: argparse.Namespace) -> object:
    if parsed.log_level is None:
        return parsed.logger or parsed.logs or None
    level = int(parsed.log_level) if parsed.log_level.isdigit() else parsed.log_level.upper()
    return parsed.logger or "", level
