"""The first import, capture and resolution in a process: python first_use.py LIBRARY EFFORT CONTENDER plain|torch

Measures CPU time. `torch` imports torch before, as programs that capture many stacks do.
"""

import sys
import time

import contenders
from contenders import Absent
from library import PYTHON, WOVEN, Library
from report import cpu_ms, report_result, version

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
        imported, created = timed(cpu_ms, lambda: contender(library))
        first = created.leaf(PYTHON if contender is contenders.ExtractStack else WOVEN)
        python_only = created.leaf(PYTHON)
    except Absent as absent:
        for bench, unit in ("python/import", "ms"), ("python/first-capture", "us"), ("python/first-resolve", "ms"):
            report_result(bench, case, unit, contender.name, absent=absent)
        return
    captured, traceback = timed(thread_us, lambda: descend(LEVELS, first))
    report_result("python/first-capture", case, "us", contender.name, cost=captured, frames=created.frames(traceback))
    if contender is not contenders.TorchWay:
        report_result("python/import", case, "ms", contender.name, cost=imported)
        resolved, _ = timed(cpu_ms, lambda: created.resolve([descend(LEVELS, python_only)]))
        report_result("python/first-resolve", case, "ms", contender.name, cost=resolved)


if __name__ == "__main__":
    main()
