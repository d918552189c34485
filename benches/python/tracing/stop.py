"""The time from the last event to a usable file: python stop.py TOOL FOLDER EVENTS TIMES

If TIMES is greater than 1, also reports the cost extrapolated to TIMES as many events.
"""

import os
import subprocess
import sys
import time

import memory
import program
from report import report_result, version
from tools import named

BENCHES = (("trace/stop", "ms"), ("trace/stop-bytes", "bytes"), ("trace/stop-memory", "MB"))
AND_TOP = "ours, and top"


def milliseconds(work):
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def top(path):
    subprocess.run([sys.executable, "-m", "stackweave", "top", path], check=True, stdout=subprocess.DEVNULL)


def main():
    name, folder, events, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    trees = max(1, events // 2 // program.CALLS_PER_TREE)
    calls = trees * program.CALLS_PER_TREE
    grow = program.plain()
    grow(1)
    try:
        tool = named(name)(folder, None, calls + 1_000)
    except (ImportError, AttributeError) as error:
        for bench, unit in BENCHES:
            report_result(bench, case(events), unit, name, absent=f"not installed: {error}")
        return
    memory.reset_peak()
    before_mb = memory.peak_mb()
    tool.start()
    grow(trees)
    stop_ms = milliseconds(tool.save)
    grown_mb = memory.peak_mb() - before_mb
    if name == "ours":
        report_result("trace/stop", case(events), "ms", AND_TOP, cost=stop_ms + milliseconds(lambda: top(tool.path)))
    size = os.path.getsize(tool.path) / (2 * calls)
    os.remove(tool.path)
    report_all(events, name, stop_ms, size, grown_mb)
    if times > 1:
        report_all(times * events, f"{name} x {times}", times * stop_ms, size, times * grown_mb)


def report_all(events, peer, stop_ms, size, grown_mb):
    report_result("trace/stop", case(events), "ms", peer, cost=stop_ms)
    if peer != "cProfile":
        # A profile contains no events.
        report_result("trace/stop-bytes", case(events), "bytes", peer, cost=size)
    report_result("trace/stop-memory", case(events), "MB", peer, cost=grown_mb)


def case(events):
    return f"{version()}, {events // 1_000_000} M events"


if __name__ == "__main__":
    main()
