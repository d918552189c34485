"""After SIGTERM and SIGHUP with their default action, recordings are complete, and the program ends as usual."""

import json
import os
import signal
import subprocess
import textwrap

import stackweave
from tests.memory_support import MemoryCase, figures_of_library, library_path
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

CALLS = 400
#: Reports that it is ready, and waits for the signal. Its arguments are a library and the code to run before.
PROGRAM = """
import ctypes, faulthandler, os, signal, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
library.take.restype = ctypes.c_void_p
library.take.argtypes = [ctypes.c_size_t]
exec(sys.argv[2])

def work():
    return library.take(1000)

for _ in range({calls}):
    work()
os.write(1, b"ready\\n")
while True:
    time.sleep(60)
"""
#: Has workers of a pool, which SIGTERM ends: each has started a task that would go on.
POOL = """
import ctypes, multiprocessing, sys, time

def share(barrier):
    global both_wait
    both_wait = barrier

def hold():
    both_wait.wait()
    time.sleep(600)

def work(number):
    library = ctypes.CDLL(sys.argv[1])
    library.take.restype = ctypes.c_void_p
    library.take.argtypes = [ctypes.c_size_t]
    library.take(1000)
    return number

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    barrier = context.Barrier(3)
    with context.Pool(2, share, [barrier]) as pool:
        print(sum(pool.map(work, range({calls}), chunksize=10)))
        for _ in range(2):
            pool.apply_async(hold)
        barrier.wait()
        processes = list(pool._pool)
    for process in processes:
        process.join()
    print(*[process.exitcode for process in processes])
"""


class TerminationCase(MemoryCase):
    def script(self, text):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(text).format(calls=CALLS))
        return path

    def start(self, *command, before=""):
        """Runs the program under a command until it is ready."""
        running = subprocess.Popen(
            [PYTHON, *command, self.script(PROGRAM), library_path(), before],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.addCleanup(running.kill)
        self.assertEqual(running.stdout.readline(), "ready\n", running)
        return running

    def recorded_by(self, *command, number=signal.SIGTERM, before=""):
        """Returns what the program recorded until a signal arrived, its exit status, and its standard error."""
        running = self.start("-m", "stackweave", *command, "-o", self.path, before=before)
        running.send_signal(number)
        _, errors = running.communicate(timeout=100)
        return stackweave.open(self.path), running.returncode, errors

    def assert_closed(self, opened, ended):
        info = opened.info()
        self.assertEqual([process["ended"] for process in info["processes"]], [ended] * len(info["processes"]))
        self.assertEqual(info["missing"], [])

    def calls_of(self, opened, name):
        rows = opened.top(measure="time", all=True)
        return sum(row.calls for row in rows if row.name.rpartition(".")[2] == name)


class Programs(TerminationCase):
    def test_it_ends_by_the_signal_as_a_plain_run_and_all_is_there(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                plain = self.start()
                plain.send_signal(number)
                plain.communicate(timeout=100)
                opened, status, errors = self.recorded_by("record", number=number)
                self.assertEqual((plain.returncode, status), (-number, -number))
                self.assert_closed(opened, f"ended by {number.name}")
                self.assertEqual(errors, f"stackweave: ended by {number.name}; recorded in {self.path}\n")
                self.assertEqual(self.calls_of(opened, "work"), CALLS)
                self.assertEqual(figures_of_library(opened.memory())["allocations"], CALLS)
                shown = subprocess.run(
                    [PYTHON, "-m", "stackweave", "info", self.path], capture_output=True, text=True, cwd=ROOT
                )
                self.assertRegex(shown.stdout, rf"(?m)^  ended +ended by {number.name}$")
                os.remove(self.path)

    def test_every_recorder_and_mode(self):
        modes = (
            ("trace",),
            ("trace", "--ring", "16MB"),
            ("memory",),
            ("memory", "--mode", "aggregate"),
            ("memory", "--mode", "sampled", "--sample-every", "1"),
            ("memory", "--ring", "16MB"),
        )
        for command in modes:
            with self.subTest(" ".join(command)):
                opened, status, _ = self.recorded_by(*command)
                self.assertEqual(status, -signal.SIGTERM)
                self.assert_closed(opened, "ended by SIGTERM")
                if command[0] == "trace":
                    self.assertEqual(self.calls_of(opened, "work"), CALLS)
                else:
                    self.assertEqual(figures_of_library(opened.memory())["allocations"], CALLS)
                os.remove(self.path)

    def test_phases(self):
        script = f"""
import os, signal, sys, stackweave
timing = stackweave.Timing(sys.argv[1])
for _ in range({CALLS}):
    with timing.phase("step", "steps.toml"):
        pass
os.kill(os.getpid(), signal.SIGTERM)
"""
        self.run_script(script, status=-signal.SIGTERM)
        opened = stackweave.open(self.path)
        self.assert_closed(opened, "ended by SIGTERM")
        self.assertEqual(sum(event.role == "begin" for event in opened.events()), CALLS)

    def test_nothing_is_written_to_standard_error_if_it_is_quiet(self):
        _, status, errors = self.recorded_by("record", "--quiet")
        self.assertEqual((status, errors), (-signal.SIGTERM, ""))

    def test_handlers_of_the_program_win(self):
        before = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))"
        opened, status, _ = self.recorded_by("record", "--quiet", before=before)
        self.assertEqual(status, 3)
        self.assert_closed(opened, "stopped")

    def test_the_program_sees_the_default_action(self):
        before = (
            "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
            "assert signal.signal(signal.SIGTERM, signal.SIG_IGN) is signal.SIG_DFL\n"
            "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
            "time.sleep(1)\n"
        )
        opened, status, _ = self.recorded_by("record", "--quiet", before=before)
        self.assertEqual(status, -signal.SIGTERM)
        self.assert_closed(opened, "ended by SIGTERM")

    def test_a_handler_of_faulthandler_that_goes_on_to_the_one_before(self):
        before = "faulthandler.register(signal.SIGTERM, chain=True)"
        opened, status, errors = self.recorded_by("record", "--quiet", before=before)
        self.assertEqual(status, -signal.SIGTERM)
        self.assertIn("most recent call first", errors)
        self.assert_closed(opened, "ended by SIGTERM")

    def test_it_can_be_switched_off(self):
        before = "assert 'STACKWEAVE_SIGNALS' in os.environ"
        os.environ["STACKWEAVE_SIGNALS"] = "off"
        self.addCleanup(os.environ.pop, "STACKWEAVE_SIGNALS")
        opened, status, _ = self.recorded_by("record", "--quiet", before=before)
        self.assertEqual(status, -signal.SIGTERM)
        self.assertEqual([process["ended"] for process in opened.info()["processes"]], [None])

    def test_the_default_action_comes_back(self):
        script = """
import json, signal, sys, stackweave
def caught():
    text = open("/proc/self/status").read()
    return int(text.partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1
found = [caught()]
with stackweave.Recorder(sys.argv[1]):
    found.append(caught())
found.append(caught())
print(json.dumps(found))
"""
        self.assertEqual(json.loads(self.run_script(script)), [0, 1, 0])


class Workers(TerminationCase):
    def pool(self, *command, method="fork"):
        """Runs a pool under a command, and returns what was recorded."""
        done = subprocess.run(
            [PYTHON, "-m", "stackweave", *command, "-q", "-o", self.path, self.script(POOL), library_path(), method],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=100,
        )
        self.assertEqual(done.stdout.splitlines(), [str(sum(range(CALLS))), "-15 -15"], done.stderr)
        return stackweave.open(self.folder)

    def workers(self, opened):
        return [process for process in opened.info()["processes"] if process["path"] != self.path]

    def test_calls_of_forked_workers(self):
        opened = self.pool("trace")
        self.assertEqual([process["ended"] for process in self.workers(opened)], ["ended by SIGTERM"] * 2)
        self.assertEqual((self.calls_of(opened, "work"), opened.info()["missing"]), (CALLS, []))

    def test_memory_of_forked_workers_in_every_mode(self):
        for mode in ((), ("--mode", "aggregate"), ("--mode", "sampled", "--sample-every", "1"), ("--ring", "16MB")):
            with self.subTest(mode):
                opened = self.pool("memory", *mode)
                self.assertEqual([process["ended"] for process in self.workers(opened)], ["ended by SIGTERM"] * 2)
                self.assertEqual(figures_of_library(opened.memory())["allocations"], CALLS)
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))

    def test_workers_that_are_started(self):
        for method in ("spawn", "forkserver"):
            with self.subTest(method):
                opened = self.pool("record", "--subprocesses", method=method)
                ended = [process["ended"] for process in self.workers(opened)]
                self.assertEqual(ended.count("ended by SIGTERM"), 2, ended)
                self.assertEqual(self.calls_of(opened, "work"), CALLS)
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))


class AnyMoment(TerminationCase):
    PROGRAM = """
import sys, threading, time
import stackweave

def work():
    while True:
        [bytes(size) for size in range(100, 3000, 100)]

with stackweave.memory(sys.argv[1], mode=sys.argv[2], python_allocators=True, buffer="1MiB"):
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    work()
"""

    def test_programs_of_many_threads_that_allocate(self):
        for round_ in range(12):
            mode = ("history", "aggregate", "sampled")[round_ % 3]
            path = os.path.join(self.folder, f"{round_}.swv")
            running = subprocess.Popen(
                [PYTHON, "-c", self.PROGRAM, path, mode], stdout=subprocess.PIPE, cwd=ROOT, stderr=subprocess.DEVNULL
            )
            self.addCleanup(running.kill)
            running.stdout.readline()
            with self.assertRaises(subprocess.TimeoutExpired):
                running.wait(0.03 * round_ + 0.001)
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=100)
            self.assertEqual(running.returncode, -signal.SIGTERM, (round_, mode))
            self.assert_closed(stackweave.open(path), "ended by SIGTERM")
