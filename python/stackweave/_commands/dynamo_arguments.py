"""The arguments of `stackweave dynamo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arguments import Parser, Request, add_writing, writing_options
from .arguments import parse as parse_with

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Record where the time of torch.compile goes in a Python program: each compilation, each function that Dynamo traces,
and the phases after it (AOTAutograd, Inductor, code generation, Triton). The program is not affected:
its arguments, output, exit status and signals are those of a plain run."""
EXAMPLES = """\
Examples:
  stackweave dynamo train.py --epochs 2           record train.py with its arguments
  stackweave dynamo -o compile.swv -m pytest -k compile
                                                  record a module, to compile.swv
  stackweave dynamo --report train.py             print the tables at the end, too
  stackweave dynamo --subprocesses -m torch.distributed.run train.py
                                                  the workers that it starts, too
  stackweave dynamo --no-phases train.py          only the functions that Dynamo traces

SIZE is a number of bytes or 64MB, 1GiB.

Then:
  stackweave report FILE                          one page with everything: runs, timeline, flame graphs
  stackweave phases FILE                          the compilations, and the functions with the highest cost
  stackweave export FILE -o compile.svg --time-order
                                                  a flame graph in the order of time
  stackweave export FILE -o compile.prof          for snakeviz, tuna and pstats; also call graphs and ten others"""


def parse(command: str, arguments: list[str]) -> Request:
    """Ends the process with a sentence if an argument is wrong."""
    parser = Parser(command, "dynamo", DESCRIPTION, EXAMPLES)
    add_writing(parser.add_argument_group("where it is recorded"))
    _add_choice(parser.add_argument_group("what is recorded and shown"))
    parsed, program = parse_with(parser, arguments)
    return Request(parsed, program, _profile_options(parsed))


def _add_choice(group: Any) -> None:
    group.add_argument(
        "--no-phases", action="store_true", help="record only what Dynamo traces, not the phases after it"
    )
    group.add_argument("--report", action="store_true", help="print compilations and functions at the end")


def _profile_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of stackweave.torch.dynamo.profile()."""
    options = writing_options(parsed)
    options["phases"] = False if parsed.no_phases else None
    options["report"] = parsed.report or None
    return options
