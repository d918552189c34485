"""Captures in a thread that does not hold the GIL, while another thread holds it: python contended.py LIBRARY EFFORT

Measures wall-clock time, because a waiting thread uses no CPU time.
"""

import statistics
import sys
import threading

from fresh_frames import FromC
from library import PART_NAMES, PYTHON, Library
from report import report_result, version

LEVELS, REPETITIONS = 20, 40


def descend(levels, leaf):
    return descend(levels - 1, leaf) if levels else leaf()


def spin(stop):
    while not stop:
        pass


def main():
    library, stop = Library(sys.argv[1]), []
    setup = FromC(library)
    thread = threading.Thread(target=spin, args=(stop,))
    thread.start()
    case = f"{version()}, {PART_NAMES[PYTHON]} {LEVELS}"
    for name, inner in setup.names.items():
        if name in setup.absent:
            report_result("python/without-gil", case, "us", name, absent=setup.absent[name])
            continue
        samples, frames = descend(LEVELS, lambda: library.time_each_without_gil(inner, PYTHON, REPETITIONS))
        if frames < LEVELS:
            report_result("python/without-gil", case, "us", name, absent=f"wrong: {frames} Python frames")
        else:
            report_result("python/without-gil", case, "us", name, cost=statistics.median(samples) / 1e3, frames=frames)
    stop.append(True)
    thread.join()


if __name__ == "__main__":
    main()
