"""Python programs that do everything at once while their memory is recorded: they end as usual, and nothing is lost."""

import os
import unittest

import stackweave
from tests.recordings import RecordingCase

BEGIN = """
import os, signal, sys, threading, time, warnings
import stackweave

warnings.simplefilter("ignore", DeprecationWarning)
SIZE = 3_000_000

def churn(rounds):
    kept = []
    for number in range(rounds):
        kept.append(bytearray(1000 + number))
        kept.append(str(number) * 300)
        if number % 7 == 0:
            del kept[::2]
    return len(kept)

def large(count):
    for _ in range(count):
        bytearray(SIZE)

def in_threads(work, count):
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads
"""

FORKS = """
def child(which):
    # The alarm ends a child that hangs, and its status shows that.
    signal.alarm(60)
    churn(300)
    large(3)
    if which % 2:
        os._exit(0)
    sys.exit(0)

memory = stackweave.memory(sys.argv[1], mode=sys.argv[2])
memory.start()
is_over = threading.Event()

def busy():
    while not is_over.is_set():
        churn(50)

threads = in_threads(busy, 4)
for which in range(12):
    pid = os.fork()
    if pid == 0:
        child(which)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
is_over.set()
for thread in threads:
    thread.join()
large(5)
memory.stop()
print("ended")
"""

EVERYTHING = """
import _ctypes, ctypes

def handler(*_):
    bytearray(10_000)

def load():
    # These libraries are loaded and unloaded each time: nothing else uses them.
    for _ in range(20):
        for name in ("libBrokenLocale.so.1", "libutil.so.1", "libthread_db.so.1"):
            try:
                library = ctypes.CDLL(name)
            except OSError:
                continue
            _ctypes.dlclose(library._handle)

def raise_through(depth):
    kept = bytearray(2000)
    if depth == 0:
        raise ValueError(str(len(kept)))
    raise_through(depth - 1)

def fail():
    for depth in range(30):
        try:
            raise_through(depth)
        except ValueError:
            pass
        try:
            bytearray(1 << 60)
        except MemoryError:
            pass

memory = stackweave.memory(sys.argv[1], mode=sys.argv[2])
memory.start()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
threads = [*in_threads(lambda: churn(2000), 30), *in_threads(lambda: large(4), 5)]
threads += [*in_threads(load, 3), *in_threads(fail, 3)]
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
memory.stop()
print("ended")
"""

EXIT = """
memory = stackweave.memory(sys.argv[1])
memory.start()
large(3)
threads = in_threads(lambda: churn(10_000), 4)
time.sleep(0.3)
os._exit(7)
"""


def innermost(stack):
    """Returns the name of the innermost Python function."""
    return next((frame.name for frame in stack.frames if frame.kind == "python"), None) if stack else None


class StressTest(RecordingCase):
    def test_forks_in_the_middle(self):
        for mode in ("history", "aggregate"):
            with self.subTest(mode):
                self.path = os.path.join(self.folder, f"{mode}.swv")
                self.assertEqual(self.run_script(BEGIN + FORKS, mode), "ended\n")
                self.assertEqual(self.large_blocks(stackweave.open(self.path)), 5)

    def test_everything_at_once(self):
        for mode in ("history", "aggregate"):
            with self.subTest(mode):
                self.path = os.path.join(self.folder, f"{mode}.swv")
                self.assertEqual(self.run_script(BEGIN + EVERYTHING, mode), "ended\n")
                self.assertEqual(self.large_blocks(stackweave.open(self.path)), 20)

    def test_an_exit_at_once_leaves_what_was_recorded(self):
        self.run_script(BEGIN + EXIT, status=7)
        self.assertEqual(self.large_blocks(stackweave.open(self.path)), 3)

    def large_blocks(self, recording):
        """Returns how many blocks the function large() has allocated, by the figures of its stacks."""
        rows = recording.memory()._memory_devices(rows=True)[0]["rows"]
        return sum(
            row["allocations"] for row in rows if row["bytes"] >= 3_000_000 and innermost(row["stack"]) == "large"
        )


if __name__ == "__main__":
    unittest.main()
