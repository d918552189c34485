"""The figures of a recorded Python program equal those of an independent, preloaded counter, to the byte."""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import unittest

import stackweave
from tests.memory_support import column_values, history_frames
from tests.recordings import RecordingCase
from tests.support import ROOT

SOURCE = os.path.join(ROOT, "fixtures", "counter.c")
#: Only blocks of at least this size are compared: the arenas of Python and the blocks of a recorder are smaller.
LEAST = 2_000_000

#: The program. The second call of work() is counted and recorded.
PROGRAM = f"""
import random, sys, threading

LEAST = {LEAST}

def hold(kept, size):
    kept.append(bytearray(size))

def text(size):
    return "x" * size

def grow(kept, size):
    kept[0].extend(b"y" * size)

def resize(kept):
    while len(kept) > 12:
        del kept[0]

def thread(size):
    worker = threading.Thread(target=lambda: bytes(size))
    worker.start()
    worker.join()

def work():
    kept, chosen = [], random.Random(5)
    hold(kept, LEAST)
    for number in range(120):
        size = LEAST + 100 * number + chosen.randrange(100)
        step = chosen.randrange(6)
        if step < 3:
            hold(kept, size)
        elif step == 3:
            text(size)
        elif step == 4:
            grow(kept, size)
        else:
            thread(size)
        resize(kept)
    return kept
"""
COUNTED = """
import ctypes
counts = (ctypes.c_uint64 * 7)()
counter = ctypes.CDLL(None)
begin, end = counter.sw_counter_begin, counter.sw_counter_end
begin.argtypes, end.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
work()
begin(LEAST)
kept = work()
end(counts)
print(*counts)
"""
RECORDED = """
import stackweave
work()
memory = stackweave.memory(sys.argv[1], overwrite=True)
memory.start()
kept = work()
memory.stop()
"""
NAMES = ("allocations", "bytes", "frees", "unknown_frees", "live_blocks", "live_bytes", "peak_bytes")


@functools.cache
def counter():
    if not shutil.which("cc"):
        raise unittest.SkipTest("there is no C compiler")
    folder = tempfile.mkdtemp(prefix="stackweave-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "counter.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-fno-builtin", "-o", path, SOURCE], check=True)
    return path


def column(history, name, kind):
    return column_values(history[name], kind)


def compared(history):
    """Returns the figures of the blocks that are compared."""
    sizes, freed = column(history, "size", "Q"), column(history, "freed_at", "d")
    began = column(history, "time", "d")
    large = [index for index, size in enumerate(sizes) if size >= LEAST]
    ends = [index for index in large if freed[index] is not None]
    steps = [(began[index], sizes[index]) for index in large] + [(freed[index], -sizes[index]) for index in ends]
    live = peak = 0
    for _, change in sorted(steps):
        live += change
        peak = max(peak, live)
    figures = {"allocations": len(large), "bytes": sum(sizes[index] for index in large), "frees": len(ends)}
    return figures | {"live_blocks": len(large) - len(ends), "live_bytes": live, "peak_bytes": peak}


class OracleTest(RecordingCase):
    def counted(self):
        numbers = self.run_script(PROGRAM + COUNTED, LD_PRELOAD=counter())
        counts = dict(zip(NAMES, map(int, numbers.split())))
        # These are frees of smaller blocks, which the counter does not know.
        del counts["unknown_frees"]
        return counts

    def recorded(self, **environment):
        self.run_script(PROGRAM + RECORDED, **environment)
        memory = stackweave.open(self.path).memory()
        selected = (memory._selection, memory._query)
        return {**memory._files.memory_history(*selected), "stacks": memory._files.memory_stacks(*selected)}

    def test_a_python_program_is_recorded_as_it_is_counted(self):
        counted, history = self.counted(), self.recorded()
        self.assertEqual(compared(history), counted)
        self.assertGreater(counted["peak_bytes"], counted["live_bytes"])
        self.assertGreater(counted["live_blocks"], 5)
        self.assert_functions_are_known(history)

    def assert_functions_are_known(self, history):
        """Checks that the blocks were allocated by the functions that allocate, and by each of them."""
        names = {"hold", "text", "grow", "<lambda>"}
        found = set()
        for size, stack in zip(column(history, "size", "Q"), column(history, "stack", "I")):
            if size >= LEAST:
                found.add(next(name for name, kind in history_frames(history["stacks"], stack) if kind == "python"))
        self.assertEqual(found, names)

    def test_the_figures_are_equal_with_other_allocators(self):
        counted = self.counted()
        for library in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"):
            with self.subTest(library):
                # The loader prints an error if it can't find the library.
                errors = subprocess.run(["true"], capture_output=True, env={**os.environ, "LD_PRELOAD": library}).stderr
                if errors:
                    self.skipTest(f"there is no {library}")
                self.assertEqual(compared(self.recorded(LD_PRELOAD=library)), counted)


if __name__ == "__main__":
    unittest.main()
