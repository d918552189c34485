"""Recorded allocations: python allocations.py LIBRARY CONTENDER THREADS EVENTS FOLDER [python|woven]

A few Python functions call C code that allocates and frees. Each figure is for one event: an allocation or a free.
"""

import ctypes
import os
import sys

import program
from library import PART_NAMES, Library
from outcome import measured, report_absent
from report import report_result

AREA = "recording/allocations"

# The number of Python frames that call the C code, and the number of blocks that it allocates before they return.
DEPTH = 10
AT_A_TIME = 1_000


class Churn:
    """The C code of the benchmark's library, which allocates."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.new, self.run, self.end = (
            getattr(self.library, f"stackweave_bench_churn{suffix}") for suffix in ("_new", "", "_end")
        )
        self.new.argtypes, self.new.restype = [ctypes.c_uint], ctypes.c_void_p
        self.run.argtypes, self.run.restype = [ctypes.c_void_p, ctypes.c_size_t], None
        self.end.argtypes, self.end.restype = [ctypes.c_void_p], None

    def work(self, parts, allocations):
        blocks = self.new(parts)
        for _ in range(allocations // AT_A_TIME):
            self.descend(blocks, DEPTH)
        self.end(blocks)

    def descend(self, blocks, depth):
        if depth > 1:
            self.descend(blocks, depth - 1)
        else:
            self.run(blocks, AT_A_TIME)


class Ours:
    """Stackweave, for which the allocating code records each event."""

    name = "ours"
    file = "allocations.swv"
    keeps_events = True

    def __init__(self, library_path, path, part):
        library = Library(library_path)
        reason = library.install_ours()
        if reason:
            raise ImportError(reason.decode())
        self.path = path
        self.start_at, self.stop_at = (
            getattr(ctypes.CDLL(library_path), f"stackweave_bench_recorder_{verb}") for verb in ("start", "stop")
        )
        self.start_at.argtypes, self.start_at.restype = [ctypes.c_char_p], ctypes.c_char_p
        self.stop_at.restype = ctypes.c_char_p
        self.parts = next(parts for parts, known in PART_NAMES.items() if known == part)

    def start(self):
        self._check(self.start_at(self.path.encode()))

    def stop(self):
        self._check(self.stop_at())

    @staticmethod
    def _check(error):
        if error:
            raise RuntimeError(error.decode())


class CaptureOnly(Ours):
    """Only captures the stacks, and records nothing: the cost without a recorder."""

    name = "capture only"
    file = os.devnull
    keeps_events = False

    def start(self):
        pass

    stop = start


class Memray:
    """`memray.Tracker`, which hooks allocators, and tracks calls of Python functions with a profile function."""

    name = "memray"
    file = "allocations.bin"
    keeps_events = True
    parts = 0

    def __init__(self, library_path, path, part):
        import memray

        if os.path.exists(path):
            os.remove(path)
        self.tracker = memray.Tracker(path, native_traces=part == "woven")

    def start(self):
        self.tracker.__enter__()

    def stop(self):
        self.tracker.__exit__(None, None, None)


ALL = [Ours, CaptureOnly, Memray]


def main():
    library, name, threads, events, folder, part = sys.argv[1:]
    threads, events = int(threads), int(events)
    contender = next(contender for contender in ALL if contender.name == name)
    stacks = "Python stacks" if part == "python" else "woven stacks"
    case = f"{stacks}, 1 thread" if threads == 1 else f"{stacks}, {threads} threads"
    path = os.path.join(folder, contender.file)
    try:
        recorder = contender(library, path, part)
    except ImportError as error:
        report_absent(AREA, case, name, f"not installed: {error}")
        return
    churn = Churn(library)
    allocations = max(1, events // 2 // threads // AT_A_TIME) * AT_A_TIME
    outcome = measured(
        lambda: program.together(threads, lambda: churn.work(0, allocations)),
        recorder.start,
        lambda: program.together(threads, lambda: churn.work(recorder.parts, allocations)),
        recorder.stop,
        path,
    )
    if contender.keeps_events:
        outcome.report(AREA, case, name, 2 * allocations * threads)
    else:
        report_result(AREA, case, "ns", name, cost=outcome.cpu_ns / (2 * allocations * threads))


if __name__ == "__main__":
    main()
