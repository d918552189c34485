"""Programs under one tracer: python measure.py TOOL COUNTS FOLDER LIBRARY PAIRS [PROGRAM...]

Runs each program without and with the tracer in turn, and reports results for each such pair after a warm-up pair.
"""

import contextlib
import gc
import json
import os
import sys
import time

import import_storm
from programs import PROGRAMS
from report import report_result, version
from tools import OursWithC, named

BENCHES = (("trace/cpu", "x"), ("trace/wall", "x"), ("trace/total", "x"), ("trace/event", "ns"))
ENTRIES = 2_000_000
# Takes several times as long as the others, so it runs half as often.
LONG = "richards"


def around(program):
    return import_storm.Fresh() if program == "imports" else contextlib.nullcontext()


class Clocks:
    """The CPU time of this thread, the wall-clock time, and the CPU time of the process."""

    def __init__(self):
        self.now = time.thread_time_ns(), time.perf_counter_ns(), time.process_time_ns()

    def since(self, before):
        return [after - before for after, before in zip(self.now, before.now)]


def timed(run, times, program, tool=None):
    with around(program):
        gc.collect()
        if tool:
            tool.start()
        try:
            before = Clocks()
            run(times)
            after = Clocks()
        finally:
            if tool:
                tool.stop()
    return after.since(before)


def events_of(counts, program, times, tool):
    """Returns the numbers of Python and native events of the program that the tool records."""
    (python, native), (python_twice, native_twice) = counts[program]
    python += (times - 1) * (python_twice - python)
    native += (times - 1) * (native_twice - native)
    return python, native if tool.records_c else 0


def report_pair(program, tool, plain, traced, events):
    case = f"{version()}, {program}"
    for (bench, unit), bare, with_tool in zip(BENCHES, plain, traced):
        report_result(bench, case, unit, tool.name, cost=with_tool / bare)
    python, native = events
    added = traced[0] - plain[0]
    if program == "builtins":
        # Only tools that record native calls have events there.
        if native:
            report_result("trace/event", case, "ns", tool.name, cost=added / native)
            if isinstance(tool, OursWithC):
                # The other tools are compared with this figure.
                report_result("trace/event", case, "ns", "ours", cost=added / native)
    elif program != "loop":
        report_result("trace/event", case, "ns", tool.name, cost=added / (python + native))


def report_absent(program, name, reason):
    for bench, unit in BENCHES:
        report_result(bench, f"{version()}, {program}", unit, name, absent=reason)


def measure(program, tool, counts, pairs):
    make, times = PROGRAMS[program]
    times = max(1, times // tool.part)
    try:
        run = make()
    except ImportError as error:
        report_absent(program, tool.name, f"not installed: {error}")
        return
    events = events_of(counts, program, times, tool)
    for pair in range((pairs + 1) // 2 + 1 if program == LONG else pairs + 1):
        if pair % 2:
            traced, plain = timed(run, times, program, tool), timed(run, times, program)
        else:
            plain, traced = timed(run, times, program), timed(run, times, program, tool)
        if pair:
            report_pair(program, tool, plain, traced, events)
        elif not has_recorded(tool, program, events):
            report_absent(program, tool.name, f"recorded {tool.calls()} of {events[0] // 2} calls")
            return


def has_recorded(tool, program, events):
    """Returns whether the tracer's count is close to the program's. Checked only for a program without native calls."""
    calls = tool.calls() if program == "fib" else None
    return calls is None or abs(calls - events[0] // 2) < 0.01 * calls


def main():
    name, counts, folder, library, pairs, *programs = sys.argv[1:]
    folder = os.path.join(folder, str(os.getpid()))
    os.mkdir(folder)
    programs = programs or list(PROGRAMS)
    with open(counts) as file:
        counts = json.load(file)
    try:
        tool = named(name)(folder, library, ENTRIES)
    except (ImportError, AttributeError) as error:
        for program in programs:
            report_absent(program, name, f"not installed: {error}")
        return
    for program in programs:
        measure(program, tool, counts, int(pairs))


if __name__ == "__main__":
    main()
