"""The arguments of `stackweave trace`."""

from __future__ import annotations

from .._options.table import CALLS, EVENTS, WRITE
from .arguments import Syntax

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
                                                  only some files; argument values of one function
  stackweave trace --ring 64MB server.py          keep only the last 64 MB

PATTERN is a part of a name, or module:NAME, file:NAME or function:NAME, with * and ? for any text
and character; function:=NAME is exactly that name.
TIME is a number of seconds or 10us, 1.5ms; SIZE is a number of bytes or 64MB, 1GiB.

Then:
  stackweave report FILE                          a page: flame graphs, timeline, sources
  stackweave top FILE                             the most expensive functions; also tree, flame
  stackweave export FILE -o trace.pftrace         for ui.perfetto.dev; also pstats and ten others"""

SYNTAX = Syntax("trace", DESCRIPTION, EXAMPLES, WRITE, (CALLS, EVENTS))
