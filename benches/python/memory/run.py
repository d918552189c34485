"""Runs one program: python run.py PROGRAM TIMES LIBRARY RESULT

Writes the cost of the work to RESULT: the CPU time of its thread and the wall-clock time, in seconds, and the time of a tracemalloc
snapshot, if tracemalloc is enabled.
"""

import gc
import json
import sys
import time
import tracemalloc

from programs import PROGRAMS


def snapshot_seconds():
    """Returns the time of a snapshot by traceback, which a report begins with."""
    before = time.perf_counter()
    tracemalloc.take_snapshot().statistics("traceback")
    return time.perf_counter() - before


def main():
    name, times, _library, result = sys.argv[1:]
    try:
        work = PROGRAMS[name][0]()
    except (ImportError, OSError) as error:
        found = {"absent": f"not installed: {error}"}
    else:
        work(1)
        gc.collect()
        wall, cpu = time.perf_counter(), time.thread_time()
        work(int(times))
        found = {"cpu": time.thread_time() - cpu, "wall": time.perf_counter() - wall}
        if tracemalloc.is_tracing():
            found["report"] = snapshot_seconds()
    with open(result, "w") as file:
        json.dump(found, file)


main()
