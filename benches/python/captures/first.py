"""The first of everything in a process: python first.py LIBRARY EFFORT CONTENDER plain|torch

CPU time. `torch`: torch is loaded before, as in the programs that capture stacks most.
"""

import sys
import time

import contenders
from contenders import Absent
from library import PYTHON, WOVEN, Library
from report import cpu_ms, tell, version

LEVELS = 20


def descend(levels, leaf):
    return descend(levels - 1, leaf) if levels else leaf()


def thread_us():
    return time.thread_time_ns() / 1e3


def timed(clock, function):
    start = clock()
    result = function()
    return clock() - start, result


def main():
    library, contender, process = Library(sys.argv[1]), contenders.named(sys.argv[3], contenders.ALL), sys.argv[4]
    if process == "torch":
        try:
            import torch
        except ImportError:
            return
    case = version() + (", torch loaded" if process == "torch" else "")
    try:
        imported, made = timed(cpu_ms, lambda: contender(library))
        first = made.leaf(PYTHON if contender is contenders.ExtractStack else WOVEN)
        python_only = made.leaf(PYTHON)
    except Absent as absent:
        for bench, unit in ("python/import", "ms"), ("python/first-capture", "us"), ("python/first-resolve", "ms"):
            tell(bench, case, unit, contender.name, absent=absent)
        return
    captured, traceback = timed(thread_us, lambda: descend(LEVELS, first))
    tell("python/first-capture", case, "us", contender.name, cost=captured, frames=made.frames(traceback))
    if contender is not contenders.TorchWay:
        tell("python/import", case, "ms", contender.name, cost=imported)
        resolved, _ = timed(cpu_ms, lambda: made.resolve([descend(LEVELS, python_only)]))
        tell("python/first-resolve", case, "ms", contender.name, cost=resolved)


if __name__ == "__main__":
    main()
