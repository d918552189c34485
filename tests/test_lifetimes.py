"""Long runs, many threads, forks and the end of the interpreter."""

import gc
import multiprocessing
import os
import resource
import threading
import unittest
import warnings
import weakref

import stackweave
from tests.support import PYTHON, python_frames, run_python


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def captured_in_child(_number):
    return stackweave.capture(), stackweave.thread_stacks()[threading.get_ident()].frames[0].name


class Memory(unittest.TestCase):
    def test_a_million_captures_leave_nothing_behind(self):
        def capture(count):
            for _ in range(count):
                stackweave.capture()

        def capture_deep(depth):
            return capture_deep(depth - 1) if depth else capture(1000)

        def round_of_captures():
            capture(8000)
            for depth in (1, 7):
                capture_deep(depth)

        for turn in range(102):
            round_of_captures()
            if turn == 1:
                gc.collect()
                stacks, memory = stackweave.stats()["stacks"], resident_bytes()
        self.assertEqual(stackweave.stats()["stacks"], stacks)
        self.assertLess(resident_bytes() - memory, 2 << 20)

    def test_code_that_is_gone_keeps_its_own_name(self):
        captured = []
        for number in range(3000):
            namespace = {"capture": stackweave.capture}
            exec(
                compile(f"def f{number}():\n return capture(limit=1)\nr = f{number}()", f"file{number}", "exec"),
                namespace,
            )
            captured.append(namespace.pop("r"))
            namespace.clear()
        gc.collect()
        for number, traceback in enumerate(captured):
            self.assertEqual(python_frames(traceback), [(f"file{number}", 2, f"f{number}")])

    def test_held_tracebacks_keep_no_code_alive(self):
        def generated():
            namespace = {"capture": stackweave.capture}
            exec("class Kept: pass\ndef f(kept=Kept()):\n return capture()", namespace)
            deaths.append(weakref.ref(namespace["f"].__defaults__[0]))
            return namespace["f"]()

        deaths = []
        held = [generated() for _ in range(10)]
        gc.collect()
        self.assertEqual([death() for death in deaths], [None] * 10)
        self.assertEqual({traceback.frames[0].name for traceback in held}, {"f"})


class Threads(unittest.TestCase):
    def test_eight_threads_capture_and_resolve_while_the_collector_runs(self):
        def recurse(depth, number):
            if depth:
                return recurse(depth - 1, number)
            return [stackweave.capture() for _ in range(20)]

        def work(number):
            try:
                for turn in range(200):
                    cycle = [number]
                    cycle.append(cycle)
                    depth = (number + turn) % 10
                    captured = recurse(depth, number)
                    frames = captured[-1].frames
                    assert [frame.name for frame in frames].count("recurse") == depth + 1
                    assert stackweave.symbolize(captured)[0][0]["name"] in ("recurse", "<listcomp>")
            except BaseException as error:
                errors.append(error)

        def collect():
            while not finished:
                gc.collect()

        errors, finished = [], []
        collector = threading.Thread(target=collect)
        collector.start()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        finished.append(True)
        collector.join()
        self.assertEqual(errors, [])

    def test_daemon_threads_may_capture_until_the_end(self):
        script = """
import stackweave, threading
def work():
    while True:
        captured = stackweave.capture()
        captured.frames
        started.set()
started = threading.Event()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""
        for _ in range(5):
            run_python(script)

    def test_captures_at_the_very_end_are_captures(self):
        script = """
import atexit, stackweave
class Last:
    def __del__(self, capture=stackweave.capture):
        captured = capture()
        print(captured.frames[0].name, captured.stop_reason)
def at_exit():
    captured = stackweave.capture()
    print(captured.frames[0].name, captured.stop_reason)
atexit.register(at_exit)
last = Last()
"""
        lines = run_python(script).splitlines()
        self.assertEqual(lines[0], "at_exit end of stack")
        self.assertEqual(lines[1].split(" ")[0], "__del__")


class Processes(unittest.TestCase):
    def in_child(self, work):
        """Runs a function in a forked child, whose exit status reports the result."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # From 3.12 on, Python warns that there may be other threads.
            child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)

    def test_a_forked_child_captures_and_resolves(self):
        def work():
            again = stackweave.capture()
            assert again.frames[0].name == "work"
            assert before.frames[0].name == "test_a_forked_child_captures_and_resolves"
            assert [frame.kind for frame in again.frames][-1] == "native"
            assert len(stackweave.thread_stacks()) >= 1

        before = stackweave.capture()
        self.in_child(work)

    def test_a_fork_while_other_threads_resolve_blocks_no_thread(self):
        def resolve():
            while not finished:
                stackweave.symbolize([stackweave.capture() for _ in range(3)])

        def work():
            assert stackweave.capture().frames
            assert stackweave.symbolize([stackweave.capture()])
            assert stackweave.stats()["captures"]
            stackweave.register_extra_frames(lambda *_: None).remove()

        finished = []
        threads = [threading.Thread(target=resolve) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(8):
                self.in_child(work)
        finally:
            finished.append(True)
            for thread in threads:
                thread.join()

    def test_tracebacks_come_back_from_other_processes(self):
        multiprocessing.set_executable(PYTHON)
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                for captured, name in pool.map(captured_in_child, range(4)):
                    self.assertEqual((captured.frames[0].name, name), ("captured_in_child", "captured_in_child"))
                    self.assertIsNone(captured.stack_id)
