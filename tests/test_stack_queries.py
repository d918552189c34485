"""A program that has loaded stackweave reports its stacks to processes that may not ptrace it."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import stackweave
from tests.stack_query_support import (
    MARK,
    forbid,
    python_frames,
    query_file,
    query_stacks,
    queue,
    shown_signals,
    text_in,
)
from tests.support import PYTHON, ROOT, run_python

PTRACE, MEMFD_CREATE = 101, 319

#: Line numbers matter.
WAITS = """
import os, stackweave, sys, threading
class Program:
    def wait(self):
        sys.stdin.read()
def worker():
    ended.wait()
ended = threading.Event()
threading.Thread(target=worker, name="worker", daemon=True).start()
print(stackweave.stats()["answers"], flush=True)
Program().wait()
print("whole")
"""

#: Counts its steps while it is queried. The sums are right wherever a query interrupts it.
WORKS = """
import os, stackweave, sys, threading, time, warnings, zlib
warnings.simplefilter("ignore")
def fail(depth):
    if depth:
        return fail(depth - 1)
    raise ValueError(depth)
def handle():
    try:
        fail(20)
    except ValueError:
        return 1
def threads():
    results = []
    started = [threading.Thread(target=lambda: results.append(handle())) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return sum(results)
def forked():
    child = os.fork()
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def sleep():
    begin = time.monotonic()
    time.sleep(0.005)
    return time.monotonic() - begin >= 0.005
def piped():
    read, write = os.pipe()
    thread = threading.Thread(target=lambda: (time.sleep(0.002), os.write(write, b"x")))
    thread.start()
    data = os.read(read, 1)
    thread.join()
    os.close(read), os.close(write)
    return data == b"x"
def work(data=os.urandom(1 << 16)):
    return zlib.crc32(zlib.decompress(zlib.compress(data))) == zlib.crc32(data)
print("ready", flush=True)
rounds = 0
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
while not stop.is_set():
    assert (handle(), threads(), sleep(), piped(), work()) == (1, 4, True, True, True)
    if rounds % 10 == 0:
        assert forked() == 7
    rounds += 1
print("rounds", rounds)
"""


def is_direct():
    return stackweave.stats()["python"]["reader"] == "direct"


class Patient:
    """Runs a program until its input ends."""

    def __init__(self, case, code, **environment):
        self.process = subprocess.Popen(
            [PYTHON, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        case.addCleanup(self.end)
        self.first_line = self.process.stdout.readline().strip()
        self.pid = self.process.pid

    def end(self):
        """Ends the program, and returns what it printed and its exit status."""
        if self.process.stdin.closed:
            return None
        try:
            out, _ = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, _ = self.process.communicate()
        return out, self.process.returncode


def wait_until_asleep(pid):
    """Waits until the main thread waits in read(2)."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with open(f"/proc/{pid}/syscall") as file:
            if file.read().startswith("0 "):
                return
        time.sleep(0.001)
    raise TimeoutError


@unittest.skipUnless(is_direct(), "only the direct reader finds Python's frames in a signal handler")
class Replies(unittest.TestCase):
    def test_a_program_reports_the_stacks_of_its_threads(self):
        patient = Patient(self, WAITS)
        (number,) = shown_signals(patient.pid)
        self.assertEqual(patient.first_line, str({"signal": number, "reason": None}))
        wait_until_asleep(patient.pid)
        threads = query_stacks(patient.pid)
        main = threads[patient.pid]
        wait, module = [frame for frame in python_frames(main) if frame.filename == "<string>"]
        self.assertEqual((wait.name, wait.line, wait.first_line), ("wait", 5, 4))
        self.assertEqual(wait.qualname, "Program.wait" if sys.version_info >= (3, 11) else None)
        self.assertEqual((module.name, module.line), ("<module>", 11))
        self.assertEqual([kind for kind, _ in main.frames[:1]], ["x"], "where it is interrupted")
        self.assertEqual([kind for kind, _ in main.frames[-1:]], ["r"], "the native root")
        self.assertEqual(main.problem, [])
        (worker,) = [thread for thread in threads.values() if thread.task != patient.pid]
        self.assertIn(("worker", 7), [(frame.name, frame.line) for frame in python_frames(worker)])
        self.assertEqual(patient.end(), ("whole\n", 0))

    def test_the_stacks_are_those_of_the_interpreter_itself(self):
        code = """
import json, os, stackweave, subprocess, sys, threading
def deep(levels):
    if levels:
        return deep(levels - 1)
    arrived.release()
    ended.wait()
arrived, ended = threading.Semaphore(0), threading.Event()
for levels in (0, 3, 50):
    threading.Thread(target=deep, args=(levels,), daemon=True).start()
    arrived.acquire()
query_code = '''
import os, json
from tests.stack_query_support import python_frames, query_stacks
places = lambda thread: [[frame.filename, frame.line, frame.name] for frame in python_frames(thread)]
print(json.dumps({thread.task: places(thread) for thread in query_stacks(os.getppid()).values()}))
'''
querying = subprocess.Popen([os.environ["PYTHON"], "-c", query_code], stdout=subprocess.PIPE)
reply = json.loads(querying.communicate()[0])
natives = {thread.ident: str(thread.native_id) for thread in threading.enumerate()}
for ident, frame in sys._current_frames().items():
    if ident == threading.get_ident():
        continue
    places = []
    while frame is not None:
        places.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    assert places == reply[natives[ident]], (places, reply[natives[ident]])
    print(len(places))
ended.set()
"""
        depths = [int(line) for line in run_python(code, PYTHON=PYTHON).split()]
        self.assertEqual(len(depths), 3)
        self.assertEqual(max(depths) - min(depths), 50)

    def test_a_thread_that_blocks_with_the_gil_does_not_prevent_a_reply(self):
        patient = Patient(self, "import ctypes, stackweave\nprint()\nctypes.PyDLL(None).getchar()")
        wait_until_asleep(patient.pid)
        (module,) = python_frames(query_stacks(patient.pid)[patient.pid])
        self.assertEqual((module.name, module.line), ("<module>", 3))

    def test_a_thousand_queries_change_nothing(self):
        patient = Patient(self, WORKS)
        self.assertEqual(patient.first_line, "ready")
        names = set()
        for _ in range(1000):
            threads = query_stacks(patient.pid)
            names.update(frame.name for thread in threads.values() for frame in python_frames(thread))
        out, status = patient.end()
        self.assertEqual((out.split()[0], status), ("rounds", 0))
        self.assertGreater(int(out.split()[1]), 0)
        self.assertTrue({"sleep", "piped", "<module>"} <= names, names)

    def test_a_forked_child_replies_for_itself_and_an_executed_program_does_not(self):
        code = """
import os, stackweave, sys
child = os.fork()
if child == 0:
    read, write = os.pipe()
    print(os.getpid(), flush=True)
    os.read(read, 1)
sys.stdin.read()
os.kill(child, 9)
os.waitpid(child, 0)
count = "print(open('/proc/self/maps').read().count('memfd'))"
os.execv(os.environ["PYTHON"], [os.environ["PYTHON"], "-c", count])
"""
        patient = Patient(self, code, PYTHON=PYTHON)
        child = int(patient.first_line)
        wait_until_asleep(child)
        (thread,) = query_stacks(child).values()
        self.assertEqual([(frame.name, frame.line) for frame in python_frames(thread)], [("<module>", 7)])
        self.assertEqual(patient.end(), ("0\n", 0))

    def test_a_signal_that_is_not_a_query_for_the_process_changes_nothing(self):
        patient = Patient(self, WAITS)
        wait_until_asleep(patient.pid)
        (number,) = shown_signals(patient.pid)
        os.kill(patient.pid, number)
        queue(patient.pid, number, 0)
        with query_file(patient.pid + 1) as other, query_file(patient.pid) as right:
            queue(patient.pid, number, MARK << 32 | other)
            queue(patient.pid, number, MARK << 32 | right, sender=0)
            queue(patient.pid, number, MARK << 32 | right, sender=1)
            query_stacks(patient.pid)
            self.assertEqual((text_in(other), text_in(right)), ("", ""))
        self.assertEqual(patient.end(), ("whole\n", 0))


class Command(unittest.TestCase):
    """Tests stackweave stacks in a sandbox without ptrace."""

    def stacks(self, pid):
        code = (
            forbid(PTRACE)
            + f"""
arguments = [{PYTHON!r}, "-m", "stackweave", "stacks", "{pid}", "--json"]
os.execv(arguments[0], arguments)
"""
        )
        return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)

    @unittest.skipUnless(is_direct(), "only the direct reader finds Python's frames in a signal handler")
    def test_a_process_that_may_not_be_traced_is_queried(self):
        patient = Patient(self, WAITS)
        wait_until_asleep(patient.pid)
        done = self.stacks(patient.pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["process"], found["stopped_ns"]), (patient.pid, None))
        self.assertIn("so it reported its stacks", found["remarks"][0])
        main, worker = found["threads"]
        frames = [(frame["kind"], frame["name"], frame["line"]) for frame in main["frames"]]
        self.assertIn(("python", "wait", 5), frames)
        self.assertIn(("python", "<module>", 11), frames)
        native = [frame for frame in main["frames"] if frame["kind"] == "native"]
        self.assertIn("libc.so.6", {frame["module"] for frame in native})
        self.assertIn("worker", [frame["name"] for frame in worker["frames"]])
        self.assertEqual(main["state"], "S")
        self.assertEqual(patient.end(), ("whole\n", 0))

    def test_one_sentence_says_why_there_is_no_reply(self):
        patient = Patient(self, WAITS, STACKWEAVE_ANSWERS="0")
        done = self.stacks(patient.pid)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, rf"^stackweave: not allowed to look into process {patient.pid}: .*\n$")

    def test_a_process_that_is_stopped_says_so(self):
        patient = Patient(self, WAITS)
        os.kill(patient.pid, signal.SIGSTOP)
        os.waitpid(patient.pid, os.WUNTRACED)
        done = self.stacks(patient.pid)
        os.kill(patient.pid, signal.SIGCONT)
        sentence = f"process {patient.pid} may not be traced here, and does not report its stacks itself: it is stopped"
        self.assertEqual((done.returncode, done.stderr), (1, f"stackweave: {sentence}\n"))
        self.assertEqual(patient.end(), ("whole\n", 0))


class NoReplies(unittest.TestCase):
    def test_it_can_be_switched_off(self):
        patient = Patient(self, WAITS, STACKWEAVE_ANSWERS="0")
        self.assertEqual(patient.first_line, str({"signal": None, "reason": "STACKWEAVE_ANSWERS=0 is set"}))
        self.assertEqual(shown_signals(patient.pid), [])
        with open(f"/proc/{patient.pid}/status") as status:
            caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
        self.assertEqual(caught >> (signal.SIGRTMIN - 1), 0, "no real-time signal has a handler")

    def test_a_program_that_uses_all_signals_is_left_alone(self):
        code = """
import signal
for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
    signal.signal(number, signal.SIG_IGN)
import stackweave
print(stackweave.stats()["answers"]["reason"])
"""
        self.assertEqual(run_python(code), "every real-time signal is in use\n")

    def test_a_program_that_handles_the_signal_itself_receives_it(self):
        code = """
import os, signal, stackweave
number = stackweave.stats()["answers"]["signal"]
seen = []
signal.signal(number, lambda *_: seen.append(1))
os.kill(os.getpid(), number)
print(seen, stackweave.stats()["answers"])
stackweave.dump_threads(os.open(os.devnull, os.O_WRONLY))
print(stackweave.stats()["answers"]["signal"] == number - 1)
"""
        taken = {"signal": None, "reason": "the signal for dumps has another handler now"}
        self.assertEqual(run_python(code), f"[1] {taken}\nTrue\n")

    def test_an_import_without_memory_files_works(self):
        """The seccomp filter of a sandbox may forbid memfd_create."""
        code = (
            forbid(MEMFD_CREATE)
            + """
import stackweave
print(stackweave.stats()["answers"]["reason"], len(stackweave.capture().frames) > 0)
"""
        )
        reason = "the page that advertises it can't be mapped (error 1)"
        self.assertEqual(run_python(code), f"{reason} True\n")


if __name__ == "__main__":
    unittest.main()
