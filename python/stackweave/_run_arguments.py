"""What can be asked of `stackweave run`: what can be asked of `trace` and of `memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._command_arguments import Asked, Parser, add_output, output_options
from ._command_arguments import parse as parse_with
from ._memory_arguments import add_choice_of_memory, add_dumps, options_of_memory
from ._trace_arguments import add_choice_of_calls, add_more_of_calls, options_of_calls

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Run a Python program, and record its calls and its memory together, in one file: where the time went, who took the
memory, and what was going on when it was taken. The program notices nothing: its arguments, its output, its exit
status and its signals are those of a plain run."""
EXAMPLES = """\
examples:
  stackweave run train.py --epochs 2              record train.py with its arguments
  stackweave run -o run.swv -m pytest tests       record a module, to run.swv
  stackweave run --only memory train.py           memory and no calls: what stackweave memory does
  stackweave run --demote --sample 512KiB app.py  much cheaper: no calls that take no time, one allocation in 512 KiB
  stackweave run --subprocesses server.py         the Python programs that it starts, too

PATTERN is a part of a name, or module:NAME, file:NAME or function:NAME, with * and ? for any text and
character; function:=NAME is exactly that name.
TIME is a number of seconds or 10us, 1.5ms; SIZE is a number of bytes or 64MB, 1GiB.

then:
  stackweave report FILE                          one page: timeline, functions, flame graphs, memory
  stackweave top FILE                             the functions that took most time
  stackweave top FILE --measure peak              the functions that held most memory
  stackweave heap FILE                            peak, leaks, sizes and the curve over time"""
PARTS = ("calls", "memory")


def parse(command: str, arguments: list[str]) -> Asked:
    """Ends the process, with a sentence, if something is wrong."""
    parser = Parser(command, "run", DESCRIPTION, EXAMPLES)
    where = parser.add_argument_group("where it is recorded")
    where.add_argument("--only", choices=PARTS, help="record calls, or memory, and not both")
    add_output(where, "32MiB", "--buffer")
    calls = parser.add_argument_group("which calls are recorded")
    add_choice_of_calls(calls)
    add_more_of_calls(calls)
    memory = parser.add_argument_group("how memory is recorded")
    add_choice_of_memory(memory)
    add_dumps(memory)
    parsed, program = parse_with(parser, arguments)
    for part, group in (("calls", calls), ("memory", memory)):
        if parsed.only not in (None, part) and (said := _said_in(group, parsed)):
            parser.error(f"--only {parsed.only} leaves out {part}, which {' and '.join(said)} would be about")
    return Asked(parsed, program, _run_options(parsed))


def _said_in(group: Any, parsed: argparse.Namespace) -> list[str]:
    """The options of a group that were used."""
    used = (action for action in group._group_actions if getattr(parsed, action.dest) != action.default)
    return [action.option_strings[0] for action in used]


def _run_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """As stackweave.record() takes them."""
    said = output_options(parsed)
    said["buffer"] = said.pop("memory")
    for part, options in (("calls", options_of_calls(parsed)), ("memory", options_of_memory(parsed))):
        chosen = {name: value for name, value in options.items() if value is not None}
        said[part] = parsed.only in (None, part) and (chosen or True)
    return said
