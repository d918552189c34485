"""The arguments of `stackweave memory`."""

from __future__ import annotations

import argparse
from typing import Any

from .._recorders.memory_options import BUFFER
from .arguments import Parser, Request, add_output, output_options
from .arguments import parse as parse_with

DESCRIPTION = """\
Record every allocation that a Python program makes, with its Python and native stack: peak, leaks, temporary blocks.
The program is not affected: its arguments, output, exit status and signals are those of a plain run."""
EXAMPLES = """\
Examples:
  stackweave memory train.py --epochs 2           record train.py with its arguments
  stackweave memory -o run.swv -m pytest tests    record a module, to run.swv
  stackweave memory --aggregate server.py         figures for each stack: a small file, however long it runs
  stackweave memory --sample 512KiB server.py     one allocation per 512 KiB: for production
  stackweave memory --python-allocators app.py    each small Python object, too
  stackweave memory --dump-signal USR1 --dump-at-rss 8GB train.py
                                                  write a snapshot at a signal, and at a size

SIZE is a number of bytes or 64MB, 1GiB.

Then:
  stackweave report FILE                          one page with everything: curve, flame graphs, sources
  stackweave heap FILE                            peak, leaks, sizes and the curve over time
  stackweave flame FILE                           callers and callees, by their share of the peak
  stackweave export FILE -o peak.svg              a flame graph of the peak; also tables and a dozen other formats"""


def parse(command: str, arguments: list[str]) -> Request:
    """Ends the process with a sentence if an argument is wrong."""
    parser = Parser(command, "memory", DESCRIPTION, EXAMPLES)
    add_output(parser.add_argument_group("where it is recorded"), BUFFER)
    add_choice_of_memory(parser.add_argument_group("what is recorded"))
    add_dumps(parser.add_argument_group("when a snapshot is written, besides at the end"))
    parsed, program = parse_with(parser, arguments)
    return Request(parsed, program, output_options(parsed) | options_of_memory(parsed))


def add_choice_of_memory(group: Any) -> None:
    modes = group.add_mutually_exclusive_group()
    modes.add_argument("--aggregate", action="store_true", help="record figures for each stack, and no single events")
    modes.add_argument(
        "--sample", metavar="SIZE", help="record one allocation per SIZE bytes, on average; figures are estimates"
    )
    group.add_argument(
        "--python-allocators", action="store_true", help="record each object of Python's own allocator, too"
    )
    group.add_argument("--no-native", action="store_true", help="record stacks of Python frames only")
    group.add_argument("--no-mappings", action="store_true", help="do not record mappings of mmap")
    group.add_argument("--free-stacks", action="store_true", help="record the stacks that free memory, too")
    group.add_argument(
        "--depth",
        metavar="NUMBER",
        type=int,
        help="record at most this many frames of each stack, from the innermost",
    )
    group.add_argument(
        "--temporary",
        metavar="NUMBER",
        type=int,
        help="count a block as temporary if it is freed before this many other allocations (1)",
    )
    group.add_argument(
        "--curve-every", metavar="SECONDS", type=float, help="record the size of memory at this interval (0.02)"
    )
    # The default. Other tools have this option.
    group.add_argument("--follow-fork", "--follow-forks", action="store_true", help=argparse.SUPPRESS)


def add_dumps(group: Any) -> None:
    group.add_argument("--dump-signal", metavar="SIGNAL", help="write a snapshot when this signal arrives: USR1")
    group.add_argument("--dump-at-rss", metavar="SIZE", help="write a snapshot when the process has grown to this size")


def options_of_memory(parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of stackweave.memory()."""
    options: dict[str, Any] = {}
    options["mode"] = "aggregate" if parsed.aggregate else "sampled" if parsed.sample is not None else None
    options["sample_every"] = parsed.sample
    for name in ("native", "mappings"):
        options[name] = False if getattr(parsed, f"no_{name}") else None
    for name in ("python_allocators", "free_stacks"):
        options[name] = getattr(parsed, name) or None
    for name in ("depth", "temporary", "curve_every", "dump_signal", "dump_at_rss"):
        options[name] = getattr(parsed, name)
    return options
