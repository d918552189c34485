"""Calls and memory in one recording equal those of separate ones, and the counts of cProfile and the program."""

import gc
import json
import subprocess
import sys

import stackweave
from tests.memory_support import Count, figures_of_library, library_path
from tests.record_support import BEGIN, RunCase
from tests.support import PYTHON, ROOT
from tests.test_trace_cprofile import PROGRAMS, counted, differences, of_program
from tests.trace_support import Counts, load, no_collections

#: A program that runs in its own process. sys.argv[3] has the options of its recording.
WORK = """
import collections, json

def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

class Node:
    def __init__(self, number):
        self.number, self.data = number, bytearray(1000 + number)

def work():
    fibonacci(12)
    nodes = [Node(number) for number in range(300)]
    json.loads(json.dumps({str(number): list(range(number)) for number in range(50)}))
    source = "".join(f"def f{number}(x): return x + {number}\\n" for number in range(50))
    names = {}
    exec(compile(source, "generated.py", "exec"), names)
    for number in range(50):
        names[f"f{number}"](number)
    for number in range(300):
        library.give(take(number + 5000))
    del nodes[::2]
    return nodes

# The interpreter keeps what it allocates for each function that is traced.
with stackweave.trace(sys.argv[1] + ".first", overwrite=True):
    work()
gc.collect()
gc.disable()
with record(**eval(sys.argv[3])) as recording:
    kept = work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
figures = collections.Counter()
for row in recording.recording.memory()._memory_device(None)["rows"]:
    # The kernel chooses the addresses of arenas. On these depends how many tables of arenas the interpreter keeps.
    is_table = row["allocator"] == "calloc" and row["live_bytes"] == row["bytes"]
    if row["allocator"] not in ("mmap", "munmap") and not is_table:
        stack = row["stack"].frames if row["stack"] is not None else ()
        functions = ";".join(f"{frame.name}:{frame.lineno}" for frame in stack if frame.kind == "python")
        if "work:" in functions:  # outside, the locks that a thread needs vary from run to run
            for field in ("allocations", "bytes", "live_blocks", "live_bytes"):
                figures[f"{field} {row['allocator']} {functions}"] += row[field]
print(json.dumps(figures, sort_keys=True))
"""


class Calls(RunCase):
    def test_every_program_has_the_calls_that_cprofile_counts(self):
        for name in PROGRAMS:
            with self.subTest(name):
                program = load(name)
                program.main()
                expected = of_program(counted(program.main))
                with no_collections(), self.record(calls={"gc": False}) as record:
                    program.main()
                ours = of_program(Counts.from_stats(record.recording.stats()))
                self.assertGreater(len(ours[0]), 2)
                self.assertEqual([differences(*each) for each in zip(ours, expected)], [{}, {}])

    def test_threads_have_the_calls_of_a_trace_alone(self):
        program = load("threads")
        program.main()
        found = []
        for make in (stackweave.trace, stackweave.record):
            gc.collect()
            with make(self.path, overwrite=True) as recording:
                program.main()
            functions, edges = of_program(Counts.from_stats(recording.recording.stats(kind=["python"])))
            file = program.__file__
            found.append(
                (
                    {key: value for key, value in functions.items() if key[0] == file},
                    {edge: value for edge, value in edges.items() if edge[1][0] == file},
                )
            )
        self.assertTrue(found[0][0])
        self.assertEqual(*found)


class Memory(RunCase):
    maxDiff = None

    def figures(self, options):
        """Returns figures by allocator and functions of the program, without arenas: these depend on the kernel."""
        done = subprocess.run(
            [PYTHON, "-c", BEGIN + WORK, self.path, library_path(), repr({**options, "overwrite": True})],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=120,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_allocations_are_those_of_memory_recorded_alone(self):
        alone = self.figures({"calls": False})
        self.assertGreater(len(alone), 10)
        self.assertEqual(self.figures({"calls": {"gc": False}}), alone)

    def test_every_allocation_of_a_churning_library_is_there(self):
        seed, count = 20261, Count()
        with self.record(calls={"c_calls": True}) as record:
            self.library.churn(seed, 20_000, count)
        figures = figures_of_library(record)
        for name in ("allocations", "bytes", "live_blocks", "live_bytes"):
            self.assertEqual(figures[name], getattr(count, name), f"{name}, seed {seed}")

    def test_blocks_of_python_are_there(self):
        kept = []
        with self.record(memory={"python_allocators": True}, calls={"gc": False}) as record:
            for _ in range(1000):
                kept.append({"a": object()})
        line = sys._getframe().f_lineno - 1
        here = [
            row
            for row in record.recording.leaks()
            if any(frame.lineno == line for frame in row.stack if frame.kind == "python")
        ]
        self.assertGreaterEqual(sum(row.blocks for row in here), 2000)
