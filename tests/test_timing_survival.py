"""What becomes of phases, and of the program, when something goes wrong."""

import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from collections import Counter

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT
from tests.timing_support import told

START = "import os, sys, threading, time, stackweave\ntiming = stackweave.Timing(sys.argv[1])\n"
#: Says which files of ours lie in the folder for temporary ones.
LEFT = "def left(): return os.listdir(os.environ['TMPDIR'])\n"


def pairs(recording):
    """How often each phase was begun and ended, replayed as each thread did it. Raises where ends do not fit."""
    open_frames, whole = {}, Counter()
    for event in recording.events():
        stack = open_frames.setdefault((event.process, event.thread), [])
        if event.role in ("begin", "open"):
            stack.append(event.name)
        elif event.role == "end":
            whole[stack.pop()] += 1
    return whole, [name for stack in open_frames.values() for name in stack]


class Threads(RecordingCase):
    def test_many_threads_at_random(self):
        seed = random.randrange(1 << 32)
        expected, lock = Counter(), threading.Lock()

        def work(number):
            generator, mine, depth = random.Random(seed + number), Counter(), []
            for _ in range(5000):
                if depth and generator.random() < 0.5:
                    mine[depth.pop()] += 1
                    timing.pop()
                else:
                    depth.append(f"phase {generator.randrange(300)}")
                    timing.push(depth[-1], f"file {generator.randrange(3)}", generator.randrange(500))
            while depth:
                mine[depth.pop()] += 1
                timing.pop()
            with lock:
                expected.update(mine)

        with stackweave.Timing() as timing:
            threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        whole, still_open = pairs(timing)
        self.assertEqual((whole, still_open), (expected, []), f"seed {seed}")
        self.assertFalse(timing.problems(), f"seed {seed}")

    def test_threads_that_end_with_phases_open(self):
        with stackweave.Timing() as timing:
            for number in range(50):
                thread = threading.Thread(target=lambda name=f"thread {number}": [timing.push(name) for _ in range(3)])
                thread.start()
                thread.join()
            with timing.frame("after"):
                pass
        whole, still_open = pairs(timing)
        self.assertEqual(whole["after"], 1)
        self.assertEqual(sum(whole.values()) - 1 + len(still_open), 150)
        problems = timing.problems()
        self.assertEqual(problems.left_open + problems.still_open, 150)

    def test_reading_while_others_record(self):
        finished = threading.Event()

        def work():
            while not finished.is_set():
                with timing.frame("outer"):
                    timing.push("inner", "f.py", 3)
                    timing.pop()

        with stackweave.Timing() as timing:
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            try:
                seen = [sum(row[1] for row in timing.stats().stats.values()) for _ in range(5)]
            finally:
                finished.set()
                for thread in threads:
                    thread.join()
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(set(pairs(timing)[0]), {"outer", "inner"})


class Forks(RecordingCase):
    CHILD = """
timing.push("before")
child = os.fork()
timing.push("child" if child == 0 else "parent")
timing.pop()
timing.pop()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
"""

    def test_a_child_goes_on_in_a_file_of_its_own(self):
        self.run_script(START + self.CHILD, PYTHONWARNINGS="ignore")
        self.assertEqual(len(self.files()), 2)
        opened = stackweave.open(self.folder)
        kinds = {process["pid"]: Counter() for process in opened.info()["processes"]}
        for event in opened.events():
            kinds[event.process][event.kind, event.name] += 1
        ends = {("end", None): 2}
        self.assertCountEqual(
            [dict(counted) for counted in kinds.values()],
            [
                {("begin", "before"): 1, ("begin", "parent"): 1, **ends},
                {("still-open", "before"): 1, ("begin", "child"): 1, **ends},
            ],
        )

    def test_a_child_that_is_not_followed_leaves_nothing(self):
        script = self.CHILD.replace("\nos.waitpid", "\nassert os.waitpid(child, 0)[1] == 0 #")
        self.run_script(START.replace("argv[1])", "argv[1], follow_forks=False)") + script, PYTHONWARNINGS="ignore")
        self.assertEqual(self.files(), ["out.swv"])
        self.assertEqual({event.name for event in stackweave.open(self.path).events()} - {None}, {"before", "parent"})

    def test_a_child_of_a_temporary_one(self):
        script = """
child = os.fork()
if child == 0:
    timing.push("in the child")
    timing.pop()
    assert timing.problems() == (0, 0, 0, 0)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
timing.push("in the parent")
timing.pop()
timing.stop()
print([event.name for event in timing.events()], left())
"""
        script = START.replace("sys.argv[1]", "") + LEFT + script
        self.assertEqual(
            self.run_script(script, TMPDIR=self.folder, PYTHONWARNINGS="ignore"), "['in the parent', None] []\n"
        )

    def test_a_clock_of_the_programs_goes_on_in_a_child(self):
        script = """
timing.stop()
now = [1000]
timing = stackweave.Timing(sys.argv[1], overwrite=True, clock=lambda: now[0])
timing.push("around")
now[0] += 70
child = os.fork()
timing.push("child" if child == 0 else "parent")
now[0] += 5 if child == 0 else 300
timing.pop()
timing.pop()
timing.stop()
if child:
    os.waitpid(child, 0)
"""
        self.run_script(START + script, PYTHONWARNINGS="ignore")
        rows = {key[2]: round(row[3] * 1e9) for key, row in stackweave.open(self.folder).stats().stats.items()}
        self.assertEqual(rows, {"around": 370 + 5, "parent": 300, "child": 5})

    def test_what_is_open_on_other_threads_is_none_of_the_childs(self):
        script = """
begun, finished = threading.Event(), threading.Event()
def other():
    timing.push("elsewhere")
    begun.set()
    finished.wait(60)
    timing.pop()
thread = threading.Thread(target=other)
thread.start()
begun.wait(60)
timing.push("here")
child = os.fork()
if child == 0:
    assert timing.problems().still_open == 1, timing.problems()
    timing.pop()
    assert timing.problems().still_open == 0, timing.problems()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
finished.set()
thread.join()
timing.pop()
assert not timing.problems(), timing.problems()
"""
        # 3.12 on warns of a fork where there are threads.
        self.run_script(START + script, PYTHONWARNINGS="ignore")


class Programs(RecordingCase):
    def test_a_program_that_a_recording_one_has_started(self):
        script = """
import stackweave
timing = stackweave.Timing.from_environment()
with timing.frame("in another program"):
    pass
timing.stop()
"""
        self.assertIsNone(stackweave.Timing.from_environment())
        with stackweave.Recording(self.path, subprocesses=True):
            subprocess.run([PYTHON, "-c", script], check=True, cwd=ROOT, timeout=120)
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(told(stackweave.open(self.folder)), [("begin", "in another program"), ("end",)])


class Ends(RecordingCase):
    def run_temporary(self, script, status=0, stderr=""):
        """Runs it with a Timing without a path, and gives what it prints and leaves."""
        begin = START.replace("sys.argv[1]", "") + LEFT
        return self.run_script(begin + script, status=status, stderr=stderr, TMPDIR=self.folder), os.listdir(
            self.folder
        )

    def test_a_temporary_one_leaves_no_file(self):
        work = "timing.push('a'); timing.pop(); timing.flush(); print(left())\n"
        self.assertEqual(self.run_temporary(work), ("[]\n", []))
        self.assertEqual(self.run_temporary(work + "timing.stop(); del timing\n"), ("[]\n", []))
        self.assertEqual(self.run_temporary(work + "sys.stdout.flush(); os._exit(3)\n", 3), ("[]\n", []))
        killed = work + "sys.stdout.flush(); os.kill(os.getpid(), 9)\n"
        self.assertEqual(self.run_temporary(killed, -signal.SIGKILL), ("[]\n", []))

    def test_a_temporary_one_closes_its_file(self):
        with stackweave.Timing() as timing:
            timing.push("a")
        opened = set(os.listdir("/proc/self/fd"))
        timing = None
        gc.collect()
        self.assertEqual(len(opened) - 1, len(os.listdir("/proc/self/fd")))

    def test_no_folder_for_temporary_files_is_an_error_at_once(self):
        missing = os.path.join(self.folder, "missing")
        before, tempfile.tempdir = tempfile.tempdir, missing
        try:
            self.assertRaises(OSError, stackweave.Timing)
        finally:
            tempfile.tempdir = before

    def test_a_start_that_fails_leaves_nothing(self):
        def clock():
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            stackweave.Timing(self.path, clock=clock)
        self.assertEqual(os.listdir(self.folder), [])
        stackweave.Timing(self.path).stop()

    def test_the_end_of_the_interpreter(self):
        script = """
import atexit
class Last:
    def __del__(self):
        timing.push("too late")
        timing.pop()
        with timing.frame("later"):
            pass
        print("done")
last = Last()
last.cycle = last
def late():
    timing.push("at exit")
    timing.pop()
atexit.register(late)
timing.push("open")
"""
        self.assertEqual(self.run_script(START + script), "done\n")
        self.assertEqual(told(stackweave.open(self.path))[0], ("begin", "open"))

    def test_threads_that_outlive_the_interpreter(self):
        script = """
def work():
    while True:
        with timing.frame("outer", x=1):
            timing.push("inner", "f.py", 3)
            timing.pop(graph=1)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
        for _ in range(3):
            self.run_script(START + script)
            whole, _ = pairs(stackweave.open(self.path))
            self.assertGreater(whole["inner"], 0)
            os.remove(self.path)

    def test_os_exit(self):
        self.run_script(START + "timing.push('a'); timing.pop(); timing.flush(); os._exit(5)\n", status=5)
        self.assertEqual(told(stackweave.open(self.path)), [("begin", "a"), ("end",)])

    def test_kill_9(self):
        script = """
timing.stop()
timing = stackweave.Timing(sys.argv[1], overwrite=True, flush_every=0.01)
number = 0
while True:
    with timing.run("run", number=number):
        for _ in range(100):
            timing.push("inner", "f.py", 7)
            timing.pop()
    number += 1
    if number == 200:
        print("ready", flush=True)
"""
        with subprocess.Popen(
            [PYTHON, "-c", START + script, self.path], stdout=subprocess.PIPE, cwd=ROOT, env=os.environ
        ) as program:
            try:
                self.assertEqual(program.stdout.readline(), b"ready\n")
                # Something was written by then, or is soon.
                while os.path.getsize(self.path) < 5000:
                    self.assertIsNone(program.poll())
            finally:
                program.kill()
        opened = stackweave.open(self.path)
        whole, _ = pairs(opened)
        self.assertGreater(whole["inner"], 100)
        numbers = [event.details["number"] for event in opened.events() if event.kind == "begin-run"]
        self.assertEqual(numbers, list(range(len(numbers))))

    def test_a_full_disk_stops_nobody(self):
        script = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
for number in range(200_000):
    timing.push(f"phase {number % 1000}", "f.py", number % 777)
    timing.pop()
    if number == 500:
        timing.flush()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    summary = timing.stop()
timing.push("after")
print(len(caught), "could not be written" in str(caught[0].message), bool(summary.error))
print(len(timing.stats().stats) > 10, timing.problems())
"""
        shown = self.run_script(START + script)
        problems = "Problems(unmatched_pops=0, left_open=0, still_open=0, lost_tokens=0)"
        self.assertEqual(shown, f"1 True True\nTrue {problems}\n")
        self.assertNotEqual(stackweave.open(self.path).info()["missing"], [])

    def test_dropped_events_leave_the_rest_in_order(self):
        """The writer is held up by a pipe that nobody reads for a while."""
        os.mkfifo(self.path)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        timing = stackweave.Timing(self.path, overwrite=True, memory=1, when_full="drop")
        copied, finished = os.path.join(self.folder, "copied.swv"), threading.Event()

        def drain():
            with open(copied, "wb") as copy:
                while True:
                    was_finished = finished.is_set()
                    try:
                        part = os.read(reader, 1 << 20)
                    except BlockingIOError:
                        part = b""
                    copy.write(part)
                    if not part and was_finished:
                        return
                    if not part:
                        finished.wait(0.001)

        def work():
            for _ in range(200_000):
                timing.push("outer")
                timing.push("inner")
                timing.pop()
                timing.pop()

        draining = threading.Thread(target=drain)
        with timing.frame("outermost"):
            work()
            draining.start()
            self.addCleanup(draining.join)
            self.addCleanup(finished.set)
            timing.flush()
            work()
        with self.assertWarnsRegex(RuntimeWarning, "lost"):
            timing.stop()
        finished.set()
        draining.join()
        opened = stackweave.open(copied)
        gaps = sum(event.kind == "still-open" and event.values["depth"] == 0 for event in opened.events())
        self.assertGreater(gaps, 0)
        (outermost,) = [child for child in opened.tree().children if child.function == "outermost"]
        (outer,) = [child for child in outermost.children if child.function == "outer"]
        (inner,) = [child for child in outer.children if child.function == "inner"]
        begun = sum(event.kind == "begin" for event in opened.events())
        # The first event after a gap can't be put in its place.
        self.assertLessEqual(begun - gaps, 1 + outer.calls + inner.calls)
        self.assertGreater(inner.calls, 1000)


class Oddities(RecordingCase):
    def test_nesting_of_100_000(self):
        depth = 100_000
        with stackweave.Timing() as timing:
            for number in range(depth):
                timing.push("deep", "f.py", number % 3)
            self.assertEqual(len(timing.open_frames()), depth)
            for _ in range(depth):
                timing.pop()
        self.assertFalse(timing.problems())
        rows = {line: row[:2] for (_, line, _), row in timing.stats().stats.items()}
        self.assertEqual(rows, {line: (1, len(range(line, depth, 3))) for line in range(3)})

    def test_a_frame_around_100_000_that_are_left_open(self):
        with stackweave.Timing() as timing:
            with timing.frame("around"):
                for _ in range(100_000):
                    timing.push("left")
        self.assertEqual(timing.problems(), (0, 100_000, 0, 0))
        self.assertIn("'left' (100000 times)", timing.explain_problems()[0])
        self.assertEqual(pairs(timing), (Counter({"left": 100_000, "around": 1}), []))

    def test_any_text_is_a_name(self):
        names = ["", "é\N{SNOWMAN}", "\N{PILE OF POO}", "a\0b", "a\nb", "x" * 1_000_000, "<&>\"'"]
        with stackweave.Timing() as timing:
            for name in names:
                timing.push(name, name, 1)
                timing.pop()
            timing.push("lone \udc80 surrogate", "\ud800")
            timing.pop(text="\udfff")
        begun = [event.name for event in timing.events() if event.role == "begin"]
        # What is not kept whole is kept from its beginning on.
        for name, kept in zip(names, begun, strict=False):
            self.assertTrue(kept == name or (len(name) > 1000 and name.startswith(kept[:1000])), name[:20])
        self.assertEqual(len(begun), len(names) + 1)
        self.assertRegex(begun[-1], "^lone .* surrogate$")
        self.assertEqual(len(list(timing.events())), 2 * len(begun))

    def test_details_that_do_not_fit(self):
        with stackweave.Timing() as timing:
            timing.push("a", text="x" * 1_000_000)
            with timing.frame("b") as phase:
                phase.note(text="y" * 1_000_000)
            timing.pop()
        self.assertEqual(pairs(timing), (Counter({"a": 1, "b": 1}), []))
        details = [event.details for event in timing.events() if event.details]
        self.assertEqual([list(each) for each in details], [["omitted_bytes"]] * 2)

    def test_phases_leave_no_memory_behind(self):
        def work(rounds):
            for _ in rounds:
                timing.push("outer", "f.py", 3)
                timing.push("inner")
                timing.pop()
                timing.pop()

        with stackweave.Timing() as timing:
            rounds = [None] * 5000
            gc.disable()
            self.addCleanup(gc.enable)
            counts = []
            for _ in range(4):
                before = sys.getallocatedblocks()
                work(rounds)
                counts.append(sys.getallocatedblocks() - before)
        self.assertLess(min(counts), 5)

    def test_collections_of_garbage_in_the_middle(self):
        """With code that is run at any allocation, and tells of phases itself."""

        class Noisy:
            def __init__(self):
                self.cycle = self

            def __del__(self):
                timing.push("collected", "gc.py", 1, x=[1])
                timing.pop(y=2)

        before = gc.get_threshold()
        gc.set_threshold(1, 1, 1)
        self.addCleanup(gc.set_threshold, *before)
        with stackweave.Timing() as timing:
            for number in range(300):
                Noisy()
                with timing.frame(f"frame {number}", "f.py", number, values=[{}, []]) as phase:
                    phase.note(more=[number])
                    timing.push("inner", text=str(number))
                    timing.pop(done=[object()])
            gc.set_threshold(*before)
            gc.collect()
        whole, still_open = pairs(timing)
        self.assertEqual((whole["inner"], whole["collected"], still_open), (300, 300, []))
        self.assertFalse(timing.problems())

    def test_a_frame_around_the_yield_of_a_generator(self):
        def steps(name):
            with timing.frame(name):
                yield 1
                yield 2

        with stackweave.Timing() as timing:
            one, two = steps("one"), steps("two")
            for _ in range(2):
                next(one)
                next(two)
            one.close()  # "two" was begun inside it
            two.close()
            three = steps("three")
            next(three)
            del three
        self.assertEqual(timing.problems(), (0, 1, 0, 1))
        self.assertEqual(pairs(timing), (Counter({"one": 1, "two": 1, "three": 1}), []))

    def test_signal_handlers_tell_of_phases(self):
        script = """
import signal
def handler(number, frame):
    timing.push("handler")
    timing.pop()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for number in range(300_000):
    timing.push("work", "f.py", number % 5)
    timing.pop()
signal.setitimer(signal.ITIMER_REAL, 0)
assert not timing.problems(), timing.problems()
"""
        self.run_script(START + script)
        whole, still_open = pairs(stackweave.open(self.path))
        self.assertEqual((whole["work"], still_open), (300_000, []))
        self.assertGreater(whole["handler"], 0)

    def test_an_exception_that_nobody_handles(self):
        script = START + "with timing.frame('a'):\n    timing.push('b')\n    1 / 0\n"
        self.run_script(script, status=1, stderr="Traceback .*ZeroDivisionError.*\n")
        events = told(stackweave.open(self.path))
        self.assertEqual(events[:3], [("begin", "a"), ("begin", "b"), ("end-left-open",)])
        self.assertEqual(events[3], ("end-failed", {"error": "ZeroDivisionError: division by zero"}))
        self.assertEqual(events[4][:2], ("instant-with", "unhandled exception"))


@unittest.skipUnless(sys.platform == "linux", "reads what the kernel says of the process")
class Long(RecordingCase):
    def test_memory_does_not_grow_with_the_recording(self):
        script = """
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
def work(count):
    for number in range(count):
        timing.push("phase", "f.py", number % 100)
        timing.pop()
timing.stop()
timing = stackweave.Timing(memory="16MB")
work(100_000)
early = resident()
work(900_000)
print(resident() - early)
timing.stop()
"""
        self.assertLess(int(self.run_script(START + script)), 24 << 10, "KiB more for ten times as many phases")


if __name__ == "__main__":
    unittest.main()
