"""Runs every case: python run_cases.py LIBRARY. Then leaves two walks for the shutdown."""

import ctypes
import inspect
import sys

import support


class AtShutdown:
    """Walks when the interpreter clears its modules. It keeps references to everything that it needs."""

    def __init__(self):
        self.held, self.released, self.truth, self.frame = support.held, support.released, support.truth, sys._getframe
        self.compare, self.print = support.compare, print

    def __del__(self):
        frames, stop = self.held.frames("walk", 64)
        inside = 1  # Library.frames
        assert stop == "end of stack", stop
        self.compare(frames[inside:], self.truth(self.frame()), "shutdown")
        _, without_gil = self.released.frames("walk", 64)
        self.print("shutdown:", len(frames), "frames,", without_gil, flush=True)


def main(library):
    global at_shutdown
    support.load(library)
    import death_cases
    import event_cases
    import outside_cases
    import random_programs
    import source_cases
    import walk_cases

    count, ignored = 0, []
    sys.unraisablehook = lambda fault: ignored.append((fault.object, fault.exc_value))
    for module in outside_cases, walk_cases, event_cases, source_cases, death_cases, random_programs:
        for name, case in list(vars(module).items()):
            if name.startswith("case_"):
                case(library) if inspect.signature(case).parameters else case()
                count += 1
    assert not ignored, ignored  # exceptions in __del__
    sys.unraisablehook = sys.__unraisablehook__
    print("cases", count, "checks", support.checks, flush=True)
    ctypes.pythonapi.Py_AtExit(support.held.report_at_exit)
    at_shutdown = AtShutdown()


if __name__ == "__main__":
    main(sys.argv[1])
