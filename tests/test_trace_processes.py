"""Programs are traced that end in different ways, fork, and start others."""

import os

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON
from tests.trace_support import BEGIN, Replay, of_program


class Ends(RecordingCase):
    def leaves(self):
        opened = stackweave.open(self.path)
        self.assertEqual(opened.info()["missing"], [])
        replay = Replay(opened.events())
        self.assertEqual(replay.unfinished, {})
        leaves = of_program(replay, "leaf")
        self.assertLessEqual({span.kind for span in leaves}, {"call"})
        return len(leaves)

    def test_a_program_that_forgets_to_stop(self):
        self.run_script(BEGIN + "recording = trace().start()\nfor _ in range(100): down(3, leaf)\n")
        self.assertEqual(self.leaves(), 100)

    def test_a_program_that_fails(self):
        script = "recording = trace().start()\nfor _ in range(100): leaf()\ndown(5, lambda: 1 / 0)\n"
        self.run_script(BEGIN + script, status=1, stderr="Traceback.*ZeroDivisionError: .*\n")
        self.assertEqual(self.leaves(), 100)

    def test_threads_that_are_not_joined(self):
        script = """
def work():
    while True:
        down(5, leaf)
        if next(count) > 2000:
            time.sleep(0.001)

class Last:
    def __del__(self):
        down(5, leaf)

import itertools
count = itertools.count()
last = Last()
import atexit
atexit.register(down, 5, leaf)
recording = trace().start()
for _ in range(5):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
last.me = last
"""
        for _ in range(3):
            self.run_script(BEGIN + script)
            self.assertGreater(self.leaves(), 100)
            os.remove(self.path)

    def test_a_generator_that_is_closed_at_the_very_end(self):
        script = """
def steps():
    try:
        yield 1
    finally:
        down(3, leaf)

generators = [steps() for _ in range(3)]
recording = trace().start()
for generator in generators:
    next(generator)
sys.modules["kept"] = generators
"""
        self.run_script(BEGIN + script)
        self.leaves()


class Children(RecordingCase):
    FORK = """
warnings.simplefilter("ignore", DeprecationWarning)

def in_child():
    leaf()
    leaf()

def work():
    leaf()
    child = os.fork()
    if child == 0:
        down(2, in_child)
        return None
    os.waitpid(child, 0)
    leaf()
    return child

recording = trace(mechanism=sys.argv[2]).start()
child = down(20, work)
if child is None:
    sys.exit()
recording.stop()
print(child)
"""

    def test_a_forked_child_has_a_file_of_its_own_with_its_whole_stack(self):
        from tests.trace_support import MECHANISMS

        for mechanism in MECHANISMS:
            with self.subTest(mechanism):
                child = int(self.run_script(BEGIN + self.FORK, mechanism))
                opened = stackweave.open(self.folder)
                parent = next(process["pid"] for process in opened.info()["processes"] if process["pid"] != child)
                self.assertEqual(opened.info()["missing"], [])
                ours, of_child = Replay(opened.events(process=parent)), Replay(opened.events(process=child))
                self.assertEqual([len(of_program(each, "leaf")) for each in (ours, of_child)], [2, 2])
                self.assertEqual((ours.unfinished, of_child.unfinished), ({}, {}))
                (work,) = of_program(of_child, "work")
                self.assertEqual(work.kind, "open")
                shape = ("work", ("down", ("down", ("down", ("in_child", "leaf", "leaf")))))
                self.assertEqual(work.shape, shape)
                self.assertEqual(sum(span.kind == "open" for span in of_program(of_child, "down")), 21)
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))

    def test_forks_while_threads_are_traced(self):
        script = """
warnings.simplefilter("ignore", DeprecationWarning)

def work():
    while not finished:
        down(3, leaf)
        time.sleep(0.0001)

finished = []
with trace() as recording:
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        child = os.fork()
        if child == 0:
            down(3, leaf)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    finished.append(1)
    for thread in threads:
        thread.join()
"""
        self.run_script(BEGIN + script)
        replay = Replay(stackweave.open(self.path).events())
        self.assertEqual(replay.unfinished, {})

    def test_processes_of_a_pool(self):
        script = """
import multiprocessing, subprocess

def square(number):
    leaf()
    return number * number

with trace() as recording:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(square, range(10), 1) == [number * number for number in range(10)]
        pool.close()
        pool.join()
    command = [os.environ["STACKWEAVE_TEST_PYTHON"], "-c", "print(1)"]
    assert subprocess.run(command, capture_output=True).stdout == b"1\\n"
"""
        self.run_script(
            "import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n" + BEGIN + script,
            STACKWEAVE_TEST_PYTHON=PYTHON,
        )
        opened = stackweave.open(self.folder)
        squares = [
            len(of_program(Replay(opened.events(process=process["pid"])), "square"))
            for process in opened.info()["processes"]
        ]
        self.assertEqual(sum(squares), 10)
        self.assertEqual(len(squares), 3)
