"""A ring stays within its size, whatever names and stacks are recorded."""

import os

import stackweave
from tests.memory_support import MemoryCase, figures_of_library
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

MEGABYTE = 1_000_000
#: The bytes that the documentation allows beyond the size of a ring, and one buffer of events with their names.
BEYOND = (64 << 10) + 300_000
NAMES = 400_000


class Bounds(MemoryCase):
    def test_names_that_never_repeat(self):
        script = f"""
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
with stackweave.Recorder(sys.argv[1], ring="1MB") as recording:
    for number in range({NAMES}):
        recording.instant(f"GET /user/{{number}}", stack=False)
        if number == {NAMES // 4}:
            recording.flush()
            before = resident()
    recording.flush()
    print(resident() - before)
"""
        grown = int(self.run_program(script))
        # The rest is the table of all names of the process. It needs about 40 bytes for each, and has its own limit.
        self.assertLess(grown, 32 << 20)
        self.assertLess(os.path.getsize(self.path), MEGABYTE + BEYOND)
        names = [event.name for event in stackweave.open(self.path).events()]
        self.assertEqual(names, [f"GET /user/{number}" for number in range(NAMES - len(names), NAMES)])
        self.assertGreater(len(names), 10_000)

    def test_calls_of_functions_that_are_made_again_and_again(self):
        script = """
with stackweave.trace(sys.argv[1], ring="200KB"):
    for number in range(8_000):
        namespace = {}
        exec(f"def step_{number}(): pass", namespace)
        namespace[f"step_{number}"]()
"""
        self.run_program(script)
        self.assertLess(os.path.getsize(self.path), 200_000 + BEYOND)
        opened = stackweave.open(self.path)
        steps = {row.name.rpartition(".")[2]: row.calls for row in opened.top(measure="time", all=True)}
        steps = {name: calls for name, calls in steps.items() if name.startswith("step_")}
        self.assertEqual(steps, {f"step_{number}": 1 for number in range(8_000 - len(steps), 8_000)})
        self.assertGreater(len(steps), 100)

    def test_figures_of_memory_are_complete_in_every_dump(self):
        count = 30_000
        script = f"""
with memory(ring="100KB") as recording:
    for number in range({count}):
        library.give(take(100))
        if number % 10_000 == 0:
            recording.dump()
"""
        self.run_program(script)
        opened = stackweave.open(self.path)
        self.assertEqual(figures_of_library(opened.memory())["allocations"], count)
        self.assertLess(os.path.getsize(self.path), 100_000 + BEYOND)
