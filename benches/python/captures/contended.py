"""Captures in a thread that does not hold the GIL, while another does: python contended.py LIBRARY EFFORT

Wall-clock time, since a thread that waits takes no CPU time.
"""

import statistics
import sys
import threading

from fresh_frames import FromC
from library import PART_NAMES, PYTHON, Library
from report import tell, version

LEVELS, REPETITIONS = 20, 40


def descend(levels, leaf):
    return descend(levels - 1, leaf) if levels else leaf()


def spin(stop):
    while not stop:
        pass


def main():
    library, stop = Library(sys.argv[1]), []
    way = FromC(library)
    thread = threading.Thread(target=spin, args=(stop,))
    thread.start()
    case = f"{version()}, {PART_NAMES[PYTHON]} {LEVELS}"
    for name, inner in way.names.items():
        if name in way.absent:
            tell("python/without-gil", case, "us", name, absent=way.absent[name])
            continue
        samples, frames = descend(LEVELS, lambda: library.time_each_without_gil(inner, PYTHON, REPETITIONS))
        if frames < LEVELS:
            tell("python/without-gil", case, "us", name, absent=f"wrong: {frames} Python frames")
        else:
            tell("python/without-gil", case, "us", name, cost=statistics.median(samples) / 1e3, frames=frames)
    stop.append(True)
    thread.join()


if __name__ == "__main__":
    main()
