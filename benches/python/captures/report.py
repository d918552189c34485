"""Reports results to the benchmark: one flat JSON object per line, which src/report/json.rs reads."""

import json
import os
import statistics
import sys
import time


def report_result(bench, case, unit, peer, cost=None, frames=None, absent=None):
    line = {"bench": bench, "case": case, "unit": unit, "peer": peer}
    if absent is not None:
        line["absent"] = str(absent)
    else:
        line["cost"] = round(cost, 3)
        if frames is not None:
            line["frames"] = frames
    print(json.dumps(line), flush=True)


def median_excess(samples, baseline):
    """Returns the median of the differences by round, as src/statistics.rs does, so that a slow round counts once."""
    return statistics.median(sample - base for sample, base in zip(samples, baseline))


def version():
    return sys.version.split()[0]


def cpu_ms():
    """Returns the CPU time of this process and of its children, including running ones."""
    total = time.process_time_ns()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/schedstat") as schedule:
                    total += int(schedule.read().split()[0])
    return total / 1e6
