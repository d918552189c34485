"""A thread that records while it holds a lock that the writer needs does not deadlock."""

import stackweave
from tests.memory_support import MemoryCase, figures_of_library
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

#: Runs a function inside a callback of the loader, which locks its list meanwhile.
INSIDE = """
VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
visit_modules = ctypes.CDLL(None).dl_iterate_phdr

def inside_the_loader(work):
    def visit(*_):
        work()
        return 1
    visit_modules(VISIT(visit), None)
"""
MANY = 20_000


class InsideTheLoader(MemoryCase):
    def test_allocations_with_full_buffers(self):
        script = f"""
def work():
    for _ in range({MANY}):
        library.give(take(100))
with memory(buffer="256KiB") as recording:
    inside_the_loader(work)
"""
        self.run_program(INSIDE + script)
        opened = stackweave.open(self.path)
        self.assertEqual(figures_of_library(opened.memory())["allocations"], MANY)
        self.assertEqual(opened.info()["missing"], [])

    def test_calls_with_full_buffers(self):
        script = f"""
def called():
    pass
def work():
    for _ in range({MANY}):
        called()
with stackweave.trace(sys.argv[1], buffer="64KiB"):
    inside_the_loader(work)
"""
        self.run_program(INSIDE + script)
        rows = stackweave.open(self.path).top(measure="time", all=True)
        self.assertEqual([row.calls for row in rows if row.name.endswith("called")], [MANY])

    def test_samples_with_native_stacks(self):
        script = f"""
def work():
    for number in range({MANY}):
        recording.instant("step", stack=True)
with stackweave.Recorder(sys.argv[1], buffer="64KiB") as recording:
    inside_the_loader(work)
"""
        self.run_program(INSIDE + script)
        self.assertEqual(stackweave.open(self.path).info()["processes"][0]["events"], MANY)

    def test_a_flush_and_a_stop(self):
        script = """
def work():
    for number in range(100):
        recording.instant("step", stack=True)
    recording.flush()
    recording.stop()
recording = stackweave.Recorder(sys.argv[1]).start()
inside_the_loader(work)
"""
        self.run_program(INSIDE + script)
        self.assertEqual(stackweave.open(self.path).info()["processes"][0]["events"], 100)
