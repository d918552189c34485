"""Phases and their program survive failures."""

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
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest
from tests.timing_support import LEFT, START, event_tuples, pairs

setUpModule = run_on_oldest_and_newest


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
            with timing.phase("after"):
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
                with timing.phase("outer"):
                    timing.push("inner", "f.py", 3)
                    timing.pop()

        with stackweave.Timing() as timing:
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            try:
                seen = [sum(row[1] for row in timing.recording.stats().stats.values()) for _ in range(5)]
            finally:
                finished.set()
                for thread in threads:
                    thread.join()
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(set(pairs(timing)[0]), {"outer", "inner"})


class Ends(RecordingCase):
    def run_temporary(self, script, status=0, stderr=""):
        """Runs a script with a Timing without a path. Returns what it prints, and the files that it leaves."""
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
        def opened():
            numbers = [os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
            return sum("timing.swv" in os.readlink(number) for number in numbers if os.path.lexists(number))

        gc.collect()
        before = opened()
        with stackweave.Timing() as timing:
            timing.push("a")
            self.assertGreater(opened(), before)
        timing = None
        gc.collect()
        self.assertEqual(opened(), before)

    def test_a_temporary_one_closes_no_file_of_the_program(self):
        timing = stackweave.Timing()
        timing.push("a")
        number = timing._kept._number
        with open(os.path.join(self.folder, "program's"), "w") as other:
            os.dup2(other.fileno(), number)  # A daemon closes all descriptors and opens others.
            self.assertRaisesRegex(stackweave.RecordingError, "closed by the program", lambda: timing.recording)
            timing.stop()
            timing = None
            gc.collect()
            self.assertEqual(os.path.sameopenfile(number, other.fileno()), True)
            os.close(number)

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
        with timing.phase("later"):
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
        self.assertEqual(event_tuples(stackweave.open(self.path))[0], ("begin", "open"))

    def test_threads_that_outlive_the_interpreter(self):
        script = """
def work():
    while True:
        with timing.phase("outer", x=1):
            timing.push("inner", "f.py", 3)
            timing.pop(graph=1)
        began.set()
began = threading.Event()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
began.wait()
"""
        for _ in range(3):
            self.run_script(START + script)
            whole, _ = pairs(stackweave.open(self.path))
            self.assertGreater(whole["inner"], 0)
            os.remove(self.path)

    def test_os_exit(self):
        self.run_script(START + "timing.push('a'); timing.pop(); timing.flush(); os._exit(5)\n", status=5)
        self.assertEqual(event_tuples(stackweave.open(self.path)), [("begin", "a"), ("end",)])

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
                # Some events are written by then, or soon after.
                while os.path.getsize(self.path) < 5000:
                    self.assertIsNone(program.poll())
            finally:
                program.kill()
        opened = stackweave.open(self.path)
        whole, _ = pairs(opened)
        self.assertGreater(whole["inner"], 100)
        numbers = [event.details["number"] for event in opened.events() if event.kind == "begin-run"]
        self.assertEqual(numbers, list(range(len(numbers))))

    def test_a_full_disk_does_not_stop_the_program(self):
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
print(len(timing.recording.stats().stats) > 10, timing.problems())
"""
        shown = self.run_script(START + script)
        problems = "Problems(unmatched_pops=0, left_open=0, still_open=0, lost_tokens=0)"
        self.assertEqual(shown, f"1 True True\nTrue {problems}\n")
        self.assertNotEqual(stackweave.open(self.path).info()["missing"], [])

    def test_dropped_events_leave_the_rest_in_order(self):
        """A pipe that is not read for a while blocks the writer."""
        os.mkfifo(self.path)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        timing = stackweave.Timing(self.path, overwrite=True, buffer=1, when_full="drop")
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
        with timing.phase("outermost"):
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
        (outermost,) = [child for child in opened.tree().children if child.name == "outermost"]
        (outer,) = [child for child in outermost.children if child.name == "outer"]
        (inner,) = [child for child in outer.children if child.name == "inner"]
        begun = sum(event.kind == "begin" for event in opened.events())
        # The position of the first event after a gap is not known.
        self.assertLessEqual(begun - gaps, 1 + outer.calls + inner.calls)
        self.assertGreater(inner.calls, 1000)


@unittest.skipUnless(sys.platform == "linux", "reads /proc/self/status")
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
timing = stackweave.Timing(buffer="16MB")
work(100_000)
early = resident()
work(900_000)
print(resident() - early)
timing.stop()
"""
        self.assertLess(int(self.run_script(START + script)), 24 << 10, "KiB more for ten times as many phases")


if __name__ == "__main__":
    unittest.main()
