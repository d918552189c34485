"""The arguments of `stackweave record`: those of `trace` and of `memory`."""

from __future__ import annotations

from .._options.option import by_parts
from .._options.table import CALLS, EVENTS, MEMORY, PARTS, SNAPSHOTS, WRITE_BOTH
from .arguments import Syntax

DESCRIPTION = """\
Run a Python program and record its calls and its memory together, in one file: where the time went, which code
allocated memory, and what the program was doing then. The program is not affected: its arguments, output, exit
status and signals are those of a plain run."""
EXAMPLES = """\
Examples:
  stackweave record train.py --epochs 2           record train.py with its arguments
  stackweave record -o run.swv -m pytest tests    record a module, to run.swv
  stackweave record --no-calls train.py           memory and no calls, like stackweave memory
  stackweave record --demote --mode sampled app.py
                                                  cheaper: no short calls, sampled allocations
  stackweave record --subprocesses server.py      the Python programs that it starts, too

PATTERN is a part of a name, or module:NAME, file:NAME or function:NAME, with * and ? for any text
and character; function:=NAME is exactly that name.
TIME is a number of seconds or 10us, 1.5ms; SIZE is a number of bytes or 64MB, 1GiB.

Then:
  stackweave report FILE                          a page: timeline, functions, flame graphs, memory
  stackweave top FILE                             the functions with the highest cost
  stackweave top FILE --measure peak              the functions with the most memory at the peak
  stackweave heap FILE                            peak, leaks, sizes and the curve over time"""

GROUPS = (PARTS, CALLS, EVENTS, MEMORY, SNAPSHOTS)
SYNTAX = Syntax("record", DESCRIPTION, EXAMPLES, WRITE_BOTH, GROUPS, arranged=by_parts)
