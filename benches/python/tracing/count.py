"""Counts the events of the programs: python count.py FILE

Writes the events of each program, for one repetition and for two: calls and returns of Python functions, and of native ones.
"""

import json
import sys

from measure import around
from programs import PROGRAMS


def events(run, times):
    """Returns the numbers of events of Python functions and of native functions."""
    counts = {"call": 0, "return": 0, "c_call": 0, "c_return": 0, "c_exception": 0}

    def hook(_frame, event, _argument):
        counts[event] += 1

    sys.setprofile(hook)
    try:
        run(times)
    finally:
        sys.setprofile(None)
    return counts["call"] + counts["return"], counts["c_call"] + counts["c_return"] + counts["c_exception"]


def main():
    found = {}
    for name, (make, _) in PROGRAMS.items():
        try:
            run = make()
        except ImportError:
            continue
        with around(name):
            run(1)
        with around(name):
            once = events(run, 1)
        with around(name):
            twice = events(run, 2) if name != "imports" else once
        found[name] = once, twice
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
