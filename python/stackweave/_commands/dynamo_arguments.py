"""The arguments of `stackweave dynamo`."""

from __future__ import annotations

from .._options.kinds import Flag
from .._options.option import Group, Option
from .._options.table import PHASES, WRITE_PHASES
from .arguments import Syntax

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
  stackweave report FILE                          a page: runs, timeline, flame graphs
  stackweave phases FILE                          compilations, and the most expensive functions
  stackweave export FILE -o compile.svg --time-order
                                                  a flame graph in the order of time
  stackweave export FILE -o compile.prof          for snakeviz, tuna and pstats; also eleven others"""

REPORT = Option("report", Flag(), False, "print compilations and functions at the end")
SHOWN = Group(PHASES.title, (*PHASES.options, REPORT))
SYNTAX = Syntax("dynamo", DESCRIPTION, EXAMPLES, WRITE_PHASES, (SHOWN,), can_be_live=False)
