"""A call and a watchdog dump all threads of programs that hang with the GIL held."""

import os
import subprocess
import tempfile
import threading
import time
import unittest

import stackweave
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest, run_python

setUpModule = run_on_oldest_and_newest

#: Hangs with the GIL held, in read(2) of a pipe, until the pipe has data. Line numbers matter.
HANGS = """
import ctypes, os, stackweave, sys, threading
def wait_for_gil():
    while True: pass
def wait_in_lock():
    with lock:
        pass
def hang():
    ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)
class Program:
    def main(self):
        hang()
lock = threading.Lock()
lock.acquire()
for target in (wait_for_gil, wait_in_lock):
    threading.Thread(target=target, daemon=True).start()
native = ctypes.CDLL(None)
thread = ctypes.c_ulong()
native.pthread_create(ctypes.byref(thread), None, native.pause, None)
watchdog = stackweave.watchdog(0.3, OPTIONS)
print(os.getpid(), flush=True)
Program().main()
watchdog.cancel()
"""


def is_direct():
    return stackweave.stats()["python"]["reader"] == "direct"


def dump():
    with tempfile.TemporaryFile() as file:
        stackweave.dump_threads(file)
        file.seek(0)
        return file.read().decode()


def threads_in(text):
    """Returns the lines of each thread, without its heading, by its number."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("Thread ")]
    return {int(block[0].split()[1]): block[1:] for block in blocks}


def python_lines(lines):
    return [line.strip() for line in lines if line.startswith("  File ")]


class Hung:
    """A program that hangs. Its standard error can be read meanwhile."""

    def __init__(self, options=""):
        self.process = subprocess.Popen(
            [PYTHON, "-c", HANGS.replace("OPTIONS", options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def read_until(self, end):
        """Reads what it writes in its first `end` dumps."""
        lines, signs = [], 0
        for line in self.process.stderr:
            signs += line.startswith("Stackweave: watchdog not reset")
            if signs > end:
                break
            lines.append(line)
        return "".join(lines)

    def release(self):
        """Lets it end, and returns its exit status."""
        self.process.communicate("x", timeout=60)
        return self.process.returncode


@unittest.skipUnless(is_direct(), "only the direct reader finds Python's frames in a signal handler")
class HungPrograms(unittest.TestCase):
    def test_a_program_that_hangs_with_the_gil_held_is_dumped_meanwhile(self):
        hung = Hung("repeat=True")
        self.addCleanup(hung.process.kill)
        text = hung.read_until(1)
        threads = threads_in(text)
        main = threads[hung.process.pid]
        hang, main_method, module = python_lines(main)
        self.assertEqual(hang, 'File "<string>", line 9 in hang')
        name = "Program.main" if "Program.main" in main_method else "main"
        self.assertEqual(main_method, f'File "<string>", line 12 in {name}')
        self.assertEqual(module, 'File "<string>", line 22 in <module>')
        self.assertRegex(main[0], r"^  \| libc\.so\.6\+0x[0-9a-f]+$")
        self.assertTrue(main[-1].startswith("  | "), "the native root is the outermost")
        innermost = [python_lines(lines)[:1] for task, lines in threads.items() if task != hung.process.pid]
        self.assertIn(['File "<string>", line 4 in wait_for_gil'], innermost)
        self.assertIn(['File "<string>", line 6 in wait_in_lock'], innermost)
        self.assertIn([], innermost, "the native thread has no Python frames")
        self.assertIn(", no Python frames:", text)
        self.assertNotIn("has not answered", text)
        self.assertNotIn("cut here", text)
        self.assertEqual(hung.release(), 0)

    def test_it_can_end_the_program(self):
        hung = Hung("exit=True")
        text = hung.process.stderr.read()
        self.assertEqual(hung.process.wait(60), 1)
        self.assertIn('File "<string>", line 9 in hang', text)
        hung.process.stdin.close()
        hung.process.stdout.close()
        hung.process.stderr.close()


class Dumps(unittest.TestCase):
    @unittest.skipUnless(is_direct(), "only the direct reader finds Python's frames in a signal handler")
    def test_the_caller_is_the_innermost_frame(self):
        own = threads_in(dump())[threading.get_native_id()]
        self.assertRegex(own[0], r'^  File ".*test_watchdog\.py", line \d+ in dump$')
        self.assertIn("test_the_caller_is_the_innermost_frame", python_lines(own)[1])

    def test_where_to_write_is_checked(self):
        for file, error in (("name", TypeError), (-1, ValueError), (10**6, stackweave.StackweaveError)):
            with self.assertRaises(error):
                stackweave.dump_threads(file)
            with self.assertRaises(error):
                stackweave.watchdog(1, file=file)
        for timeout in (0, -1, float("nan")):
            with self.assertRaises(ValueError):
                stackweave.watchdog(timeout)

    def test_other_threads_go_on(self):
        def work():
            while not finished:
                counted[0] += sum(range(100))
                time.sleep(0)

        finished, counted = [], [0]
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            text = dump()
            self.assertNotIn("has not answered", text)
        finished.append(True)
        for thread in threads:
            thread.join()


class Watchdogs(unittest.TestCase):
    def test_a_reset_or_cancelled_one_is_silent(self):
        with tempfile.TemporaryFile() as file:
            with stackweave.watchdog(3600, file=file) as watchdog:
                watchdog.reset()
                self.assertTrue(watchdog.running)
            self.assertFalse(watchdog.running)
            watchdog.cancel()
            watchdog.reset()
            self.assertEqual(watchdog.dumps, 0)
            file.seek(0)
            self.assertEqual(file.read(), b"")

    def test_the_file_may_be_closed_and_the_result_forgotten(self):
        read, write = os.pipe()
        stackweave.watchdog(0.05, file=write)
        os.close(write)
        with open(read) as file:
            self.assertEqual(file.readline(), "Stackweave: watchdog not reset for 50ms\n")
            self.assertRegex(file.readline(), "^Stackweave: [0-9]+ threads of process")

    def test_a_forked_child_has_none(self):
        script = """
import os, stackweave, warnings
warnings.simplefilter("ignore")
watchdog = stackweave.watchdog(3600, exit=True)
child = os.fork()
if child == 0:
    alive = watchdog.running
    watchdog.reset()
    watchdog.cancel()
    with open(os.devnull, "w") as nowhere, stackweave.watchdog(3600, file=nowhere) as own:
        works = own.running
    os._exit(0 if works and not alive else 1)
assert os.waitpid(child, 0)[1] == 0
assert watchdog.running
"""
        run_python(script)

    def test_a_child_that_ends_as_python_does_is_not_held_up(self):
        script = """
import os, stackweave, sys, warnings
warnings.simplefilter("ignore")
watchdog = stackweave.watchdog(3600)
child = os.fork()
if child == 0:
    sys.exit(7)
assert os.waitpid(child, 0)[1] == 7 << 8
"""
        run_python(script)

    def test_the_end_of_the_interpreter_ends_it(self):
        script = """
import stackweave, time
watchdog = stackweave.watchdog(3600, exit=True)
class Last:
    def __del__(self, watchdog=watchdog):
        print(watchdog.running)
last = Last()
"""
        self.assertEqual(run_python(script).split(), ["False"])
