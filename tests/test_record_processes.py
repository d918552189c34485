"""Calls and memory are recorded in programs that fork, start others, fail, run out of memory, or are killed."""

import os
import signal
import subprocess

import stackweave
from tests.memory_support import bytes_of_library, library_path
from tests.record_support import BEGIN, RunCase, calls_of
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

MEGABYTE = 1_000_000


class ProcessCase(RunCase):
    def found(self):
        """Returns the calls of leaf(), and the bytes that the library had in use at the end, of each process by pid."""
        found = {}
        for name in self.files():
            opened = stackweave.open(os.path.join(self.folder, name))
            pid = opened.info()["processes"][0]["pid"]
            found[pid] = (calls_of(opened, "leaf"), bytes_of_library(opened.memory().leaks()))
        return found


class Forks(ProcessCase):
    def test_a_child_has_a_file_of_its_own_with_both(self):
        script = f"""
def in_child():
    leaf()
    leaf()
    take({3 * MEGABYTE})
    {{ending}}

recording = record().start()
leaf()
take({MEGABYTE})
child = os.fork()
if child == 0:
    down(3, in_child)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
leaf()
leaf()
take({MEGABYTE})
print(os.getpid(), child, status)
"""
        for ending in ("sys.exit(3)", "recording.dump(); os._exit(3)"):
            with self.subTest(ending):
                parent, child, status = map(int, self.run_program(script.replace("{ending}", ending)).split())
                self.assertEqual(status, 3)
                self.assertEqual(self.files(), sorted(["out.swv", f"out.{child}.swv"]))
                self.assertEqual(self.found(), {parent: (3, 2 * MEGABYTE), child: (2, 3 * MEGABYTE)})
                of_child = stackweave.open(os.path.join(self.folder, f"out.{child}.swv"))
                self.assertEqual(of_child.tree().measure, "time")
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))

    def test_a_child_is_not_recorded_without_follow_forks(self):
        script = f"""
recording = record(follow_forks=False).start()
child = os.fork()
if child == 0:
    leaf()
    take({MEGABYTE})
    sys.exit(0)
print(os.waitpid(child, 0)[1])
"""
        self.assertEqual(self.run_program(script), "0\n")
        self.assertEqual(self.files(), ["out.swv"])

    def test_forks_while_threads_call_and_allocate(self):
        script = """
def work():
    while not finished:
        leaf()
        library.give(take(1000))
finished = []
with record() as recording:
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        child = os.fork()
        if child == 0:
            library.give(take(77))
            leaf()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
    finished.append(True)
    for thread in threads:
        thread.join()
"""
        self.run_program(script)
        self.assertEqual(len(self.files()), 11)
        for name in self.files():
            opened = stackweave.open(os.path.join(self.folder, name))
            self.assertEqual(opened.info()["missing"], [], name)
            self.assertGreater(calls_of(opened, "leaf"), 0, name)
            self.assertEqual(bytes_of_library(opened.memory().leaks()), 0, name)


class Programs(ProcessCase):
    CHILD = f"""
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.take.restype = ctypes.c_void_p
library.take.argtypes = [ctypes.c_size_t]
def leaf(): return None
leaf(); leaf()
kept = library.take({5 * MEGABYTE})
"""

    def start(self, options, child=CHILD):
        script = f"""
import subprocess
with record(subprocesses=True, {options}):
    leaf()
    subprocess.run([os.environ["STACKWEAVE_TEST_PYTHON"], "-c", {child!r}, sys.argv[2]], check=True)
assert "STACKWEAVE_RECORDER" not in os.environ
"""
        return self.run_program(script, STACKWEAVE_TEST_PYTHON=PYTHON)

    def test_programs_record_both_without_being_changed(self):
        self.start("")
        self.assertEqual(sorted(self.found().values()), [(1, 0), (2, 5 * MEGABYTE)])
        self.assertEqual(stackweave.open(self.folder).tree().measure, "time")

    def test_programs_have_the_options_of_the_first(self):
        self.start("memory=False, calls=dict(exclude=['leaf'])")
        self.assertEqual(sorted(self.found().values()), [(0, 0), (0, 0)])
        modules = [row for row in stackweave.open(self.folder).top(all=True) if row.name == "<module>"]
        self.assertTrue(modules)

    def test_a_program_may_start_one_of_them_itself(self):
        code = f"with stackweave.{{}}.from_environment() as recording:\n    leaf()\n    kept = library.take({MEGABYTE})"
        for recorder, expected in (("trace", (1, 0)), ("memory", (0, MEGABYTE)), ("record", (1, MEGABYTE))):
            with self.subTest(recorder):
                self.start("", f"import stackweave\n{self.CHILD}\n{code.format(recorder)}")
                self.assertEqual(sorted(self.found().values()), sorted([(1, 0), expected]))
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))
        self.assertIsNone(stackweave.record.from_environment())


class Endings(ProcessCase):
    def test_an_unhandled_exception(self):
        script = f"record().start()\nleaf()\ntake({MEGABYTE})\nraise KeyError('gone')"
        self.run_program(script, status=1, stderr=".*KeyError: 'gone'\n")
        (figures,) = self.found().values()
        self.assertEqual(figures, (1, MEGABYTE))
        names = [event.name for event in stackweave.open(self.path).events() if event.role == "instant"]
        self.assertIn("unhandled exception", names)

    def test_a_program_that_runs_out_of_memory(self):
        script = f"""
record(dump_on=["memory-error"]).start()
leaf()
take({MEGABYTE})
try:
    bytearray(1 << 60)
except MemoryError:
    leaf()
bytearray(1 << 60)
"""
        self.run_program(script, status=1, stderr=".*MemoryError\n")
        (figures,) = self.found().values()
        self.assertEqual(figures, (2, MEGABYTE))

    def test_a_program_that_is_killed(self):
        script = f"""
recording = record().start()
for _ in range(10):
    leaf()
take({MEGABYTE})
recording.flush()
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
        self.assertEqual(self.run_program(script, status=-signal.SIGKILL), "ready\n")
        (figures,) = self.found().values()
        self.assertEqual(figures, (10, MEGABYTE))

    def test_a_signal_writes_what_is_known(self):
        script = f"""
recording = record(memory=dict(dump_signal="USR1", mode="aggregate")).start()
leaf()
take({MEGABYTE})
os.kill(os.getpid(), signal.SIGUSR1)
for _ in range(6000):
    try:
        if stackweave.open(sys.argv[1]).memory().leaks().bytes >= {MEGABYTE}:
            break
    except stackweave.StackweaveError:
        time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
        self.run_program(script, status=-signal.SIGKILL)
        self.assertEqual(list(self.found().values()), [(1, MEGABYTE)])

    def test_an_interrupted_program_leaves_a_usable_recording(self):
        code = BEGIN.split("def record")[0] + (
            f"leaf()\ntake({MEGABYTE})\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
        )
        command = [PYTHON, "-m", "stackweave", "record", "-o", self.path, "-c", code, self.path, library_path()]
        plain = [PYTHON, "-c", code, self.path, library_path()]
        ends = [self.interrupt(each) for each in (plain, command)]
        self.assertEqual(ends[0][0], ends[1][0], "the status, or the signal, is that of a plain run")
        self.assertIn("KeyboardInterrupt", ends[1][1])
        self.assertRegex(ends[1][1], r"stackweave: recorded in .*out\.swv")
        (figures,) = self.found().values()
        self.assertEqual(figures, (1, MEGABYTE))

    def interrupt(self, command):
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            try:
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=60)
            finally:
                process.kill()
        return process.returncode, errors
