"""The arguments of `stackweave memory`."""

from __future__ import annotations

from .._options.table import MEMORY, SNAPSHOTS, WRITE_MEMORY
from .arguments import Syntax

DESCRIPTION = """\
Record every allocation that a Python program makes, with its Python and native stack: peak, leaks, temporary blocks.
The program is not affected: its arguments, output, exit status and signals are those of a plain run."""
EXAMPLES = """\
Examples:
  stackweave memory train.py --epochs 2           record train.py with its arguments
  stackweave memory -o run.swv -m pytest tests    record a module, to run.swv
  stackweave memory --mode aggregate server.py    figures for each stack: a small file
  stackweave memory --mode sampled server.py      one allocation per 512 KiB: for production
  stackweave memory --python-allocators app.py    each small Python object, too
  stackweave memory --dump-signal USR1 --dump-at-rss 8GB train.py
                                                  write a snapshot at a signal, and at a size

SIZE is a number of bytes or 64MB, 1GiB.

Then:
  stackweave report FILE                          a page: curve, flame graphs, sources
  stackweave heap FILE                            peak, leaks, sizes and the curve over time
  stackweave flame FILE                           callers and callees, by their share of the peak
  stackweave export FILE -o peak.svg              a flame graph of the peak; a dozen other formats"""

SYNTAX = Syntax("memory", DESCRIPTION, EXAMPLES, WRITE_MEMORY, (MEMORY, SNAPSHOTS))
