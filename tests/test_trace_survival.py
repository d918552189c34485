"""What is left of a trace when a program ends badly, goes on for long, forks, or has no room."""

import os
import signal
import subprocess

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT
from tests.trace_support import Replay, TraceCase

#: How many calls the long trace has. With more of them it needs no more memory.
CALLS = int(os.environ.get("STACKWEAVE_TRACE_CALLS", "3000000"))

BEGIN = """
import os, signal, sys, threading, time, warnings
import stackweave

def leaf():
    return None

def down(depth, then):
    return down(depth - 1, then) if depth else then()

def trace(**options):
    return stackweave.trace(sys.argv[1], **options)
"""


def of_program(replay, name):
    return [span for span in replay.called(name) if span.key[0] == "<string>"]


class Killed(RecordingCase):
    def kill_when_ready(self, script, *arguments):
        child = subprocess.Popen(
            [PYTHON, "-c", BEGIN + script, self.path, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        with child:
            self.assertEqual(child.stdout.readline(), "ready\n")
            child.kill()
        self.assertEqual(child.returncode, -signal.SIGKILL)
        return stackweave.open(self.path)

    def test_everything_up_to_the_last_flush_is_kept(self):
        script = """
def work():
    for _ in range(20000):
        leaf()
    recording.flush()
    leaf()
    print("ready", flush=True)
    signal.pause()

recording = trace(flush_every=1000).start()
down(10, work)
"""
        opened = self.kill_when_ready(script)
        replay = Replay(opened.events())
        self.assertEqual(len(of_program(replay, "leaf")), 20000)
        (work,) = of_program(replay, "work")
        self.assertEqual(len([child for child in work.children if child.name == "leaf"]), 20000)
        (names,) = replay.unfinished.values()
        self.assertEqual(names[-12:], ["down"] * 11 + ["work"])
        self.assertIn("not closed", opened.info()["missing"][0])

    def test_a_busy_program_with_threads_nests_whenever_it_is_killed(self):
        script = """
def work():
    while True:
        down(5, leaf)
        if recorded():
            print("ready", flush=True)

def recorded():
    if told or os.path.getsize(sys.argv[1]) < 100000:
        return False
    told.append(1)
    return len(told) == 1

told = []
recording = trace(flush_every=0.01).start()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
"""
        for _ in range(3):
            opened = self.kill_when_ready(script)
            replay = Replay(opened.events())
            self.assertGreater(len(of_program(replay, "leaf")), 1000)
            for span in of_program(replay, "leaf"):
                self.assertEqual(span.children, [])
            os.remove(self.path)

    def test_a_full_disk_stops_nobody(self):
        script = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with trace() as recording:
        for _ in range(300000):
            down(3, leaf)
print("done", len(caught), "could not be written" in str(caught[0].message))
"""
        self.assertEqual(self.run_script(BEGIN + script), "done 1 True\n")
        opened = stackweave.open(self.path)
        replay = Replay(opened.events())
        self.assertGreater(len(of_program(replay, "leaf")), 100)
        self.assertNotEqual(opened.info()["missing"], [])


class Long(RecordingCase):
    def test_memory_does_not_grow_with_the_trace(self):
        script = """
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

def work(calls):
    for _ in range(calls):
        leaf()

calls = int(sys.argv[2])
recording = trace(memory="16MB").start()
work(calls // 10)
early = resident()
work(calls - calls // 10)
late = resident()
summary = recording.stop()
print(summary.events, summary.bytes, early, late, resident())
assert not any(summary.lost.values()), summary.lost
"""
        shown = self.run_script(BEGIN + script, str(CALLS))
        events, size, early, late, stopped = map(int, shown.split())
        self.assertGreaterEqual(events, 2 * CALLS)
        self.assertLess(late - early, 24 << 10, "KiB more for ten times as many calls")
        self.assertLess(stopped - late, 16 << 10, "KiB more to stop")
        self.assertLess(size / events, 10)

    def test_a_thousand_threads_leave_no_memory_behind(self):
        script = """
def resident():
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * 4

def some(count):
    for _ in range(count):
        thread = threading.Thread(target=down, args=(5, leaf))
        thread.start()
        thread.join()

with trace() as recording:
    some(300)
    early = resident()
    some(700)
    print(resident() - early)
"""
        self.assertLess(int(self.run_script(BEGIN + script)), 16 << 10)
        replay = Replay(stackweave.open(self.path).events())
        self.assertEqual(len(of_program(replay, "leaf")), 1000)


class Rings(TraceCase):
    def test_the_last_events_have_their_whole_stacks(self):
        def leaf(number):
            return number

        def work():
            for number in range(60000):
                leaf(number)

        def down(depth):
            return down(depth - 1) if depth else work()

        for mechanism in self.each_mechanism():
            trace = self.trace(lambda: down(40), mechanism=mechanism, ring="128KB")
            replay = self.replay(trace)
            leaves = replay.called("leaf")
            self.assertGreater(len(leaves), 1000)
            self.assertLess(len(leaves), 60000)
            (around,) = replay.called("work")
            self.assertEqual(around.kind, "open")
            self.assertEqual(len([child for child in around.children if child.name == "leaf"]), len(leaves))
            self.assertEqual(len(replay.called("down")), 41)

    def test_rings_of_threads_too(self):
        import threading

        def leaf():
            return None

        def work(depth):
            if depth:
                return work(depth - 1)
            for _ in range(30000):
                leaf()
            return None

        def main():
            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        trace = self.trace(main, ring="256KB")
        replay = self.replay(trace)
        for span in replay.called("leaf"):
            self.assertEqual(span.children, [])
        for name in replay.roots:
            for span in replay.walk(name):
                if span.name == "leaf":
                    break
        for span in replay.called("work"):
            self.assertLessEqual(len({child.name for child in span.children}), 1)


class Ends(RecordingCase):
    def leaves(self):
        opened = stackweave.open(self.path)
        self.assertEqual(opened.info()["missing"], [])
        replay = Replay(opened.events())
        self.assertEqual(replay.unfinished, {})
        return len(of_program(replay, "leaf"))

    def test_a_program_that_forgets_to_stop(self):
        self.run_script(BEGIN + "recording = trace().start()\nfor _ in range(100): down(3, leaf)\n")
        self.assertEqual(self.leaves(), 100)

    def test_a_program_that_fails(self):
        script = "recording = trace().start()\nfor _ in range(100): leaf()\ndown(5, lambda: 1 / 0)\n"
        self.run_script(BEGIN + script, status=1, stderr="Traceback.*ZeroDivisionError: .*\n")
        self.assertEqual(self.leaves(), 100)

    def test_threads_that_nobody_waits_for(self):
        script = """
def work():
    while True:
        down(5, leaf)

class Last:
    def __del__(self):
        down(5, leaf)

last = Last()
import atexit
atexit.register(down, 5, leaf)
recording = trace().start()
for _ in range(5):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
last.me = last
"""
        for _ in range(5):
            self.run_script(BEGIN + script)
            self.assertGreater(self.leaves(), 5)
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
                ours, theirs = Replay(opened.events(process=parent)), Replay(opened.events(process=child))
                self.assertEqual([len(of_program(each, "leaf")) for each in (ours, theirs)], [2, 2])
                self.assertEqual((ours.unfinished, theirs.unfinished), ({}, {}))
                (work,) = of_program(theirs, "work")
                self.assertEqual(work.kind, "open")
                shape = ("work", ("down", ("down", ("down", ("in_child", "leaf", "leaf")))))
                self.assertEqual(work.shape, shape)
                self.assertEqual(sum(span.kind == "open" for span in of_program(theirs, "down")), 21)
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))

    def test_forks_while_threads_are_traced(self):
        script = """
warnings.simplefilter("ignore", DeprecationWarning)

def work():
    while not finished:
        down(3, leaf)

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
