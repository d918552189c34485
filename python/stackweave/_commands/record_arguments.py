"""The arguments of `stackweave record`: those of `trace` and of `memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._recorders.combined import BUFFER_OF_BOTH
from .arguments import Parser, Request, add_output, output_options
from .arguments import parse as parse_with
from .memory_arguments import add_choice_of_memory, add_dumps, options_of_memory
from .trace_arguments import add_choice_of_calls, add_more_of_calls, options_of_calls

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Run a Python program and record its calls and its memory together, in one file: where the time went, which code
allocated memory, and what the program was doing then. The program is not affected: its arguments, output, exit
status and signals are those of a plain run."""
EXAMPLES = """\
Examples:
  stackweave record train.py --epochs 2           record train.py with its arguments
  stackweave record -o run.swv -m pytest tests    record a module, to run.swv
  stackweave record --only memory train.py        memory and no calls, like stackweave memory
  stackweave record --demote --sample 512KiB app.py
                                                  cheaper: no short calls, one allocation per 512 KiB
  stackweave record --subprocesses server.py      the Python programs that it starts, too

PATTERN is a part of a name, or module:NAME, file:NAME or function:NAME, with * and ? for any text and
character; function:=NAME is exactly that name.
TIME is a number of seconds or 10us, 1.5ms; SIZE is a number of bytes or 64MB, 1GiB.

Then:
  stackweave report FILE                          one page: timeline, functions, flame graphs, memory
  stackweave top FILE                             the functions with the highest cost
  stackweave top FILE --measure peak              the functions with the most memory at the peak
  stackweave heap FILE                            peak, leaks, sizes and the curve over time"""
PARTS = ("calls", "memory")


def parse(command: str, arguments: list[str]) -> Request:
    """Ends the process with a sentence if an argument is wrong."""
    parser = Parser(command, "record", DESCRIPTION, EXAMPLES)
    where = parser.add_argument_group("where it is recorded")
    where.add_argument("--only", choices=PARTS, help="record only calls, or only memory")
    add_output(where, BUFFER_OF_BOTH)
    calls = parser.add_argument_group("which calls are recorded")
    add_choice_of_calls(calls)
    add_more_of_calls(calls)
    memory = parser.add_argument_group("how memory is recorded")
    add_choice_of_memory(memory)
    add_dumps(memory)
    parsed, program = parse_with(parser, arguments)
    for part, group in (("calls", calls), ("memory", memory)):
        if parsed.only not in (None, part) and (used := _used_options(group, parsed)):
            parser.error(f"--only {parsed.only} leaves out {part}, which {' and '.join(used)} apply to")
    return Request(parsed, program, _record_options(parsed))


def _used_options(group: Any, parsed: argparse.Namespace) -> list[str]:
    """Returns the options of a group that were used."""
    used = (action for action in group._group_actions if getattr(parsed, action.dest) != action.default)
    return [action.option_strings[0] for action in used]


def _record_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of stackweave.record()."""
    options = output_options(parsed)
    for part, of_part in (("calls", options_of_calls(parsed)), ("memory", options_of_memory(parsed))):
        chosen = {name: value for name, value in of_part.items() if value is not None}
        options[part] = parsed.only in (None, part) and (chosen or True)
    return options
