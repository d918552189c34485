"""Memory is recorded in programs that fork, start others, call exec, fail, run out of memory and are killed."""

import os
import signal
import subprocess

import stackweave
from tests.memory_support import BEGIN, MemoryCase, bytes_of_library, library_path
from tests.support import PYTHON, ROOT

MEGABYTE = 1_000_000


class ProcessCase(MemoryCase):
    def leaks(self):
        """Returns the bytes that the library had in use at the end of each process, by pid."""
        found = {}
        for name in self.files():
            opened = stackweave.open(os.path.join(self.folder, name))
            found[opened.info()["processes"][0]["pid"]] = bytes_of_library(opened.memory().leaks())
        return found


class Forks(ProcessCase):
    def test_a_child_has_a_file_of_its_own(self):
        for ending in ("sys.exit(3)", "recording.dump(); os._exit(3)"):
            with self.subTest(ending):
                script = f"""
recording = memory().start()
take({MEGABYTE})
child = os.fork()
if child == 0:
    take({3 * MEGABYTE})
    {ending}
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
take({MEGABYTE})
print(os.getpid(), child, status)
"""
                parent, child, status = map(int, self.run_program(script).split())
                self.assertEqual(status, 3)
                self.assertEqual(self.files(), sorted(["out.swv", f"out.{child}.swv"]))
                self.assertEqual(self.leaks(), {parent: 2 * MEGABYTE, child: 3 * MEGABYTE})
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))

    def test_a_child_is_not_recorded_without_follow_forks(self):
        script = f"""
recording = memory(follow_forks=False).start()
child = os.fork()
if child == 0:
    take({MEGABYTE})
    sys.exit(0)
print(os.waitpid(child, 0)[1])
"""
        self.assertEqual(self.run_program(script), "0\n")
        self.assertEqual(self.files(), ["out.swv"])

    def test_a_child_of_a_child(self):
        script = f"""
recording = memory().start()
for depth in range(3):
    take({MEGABYTE} * (depth + 1))
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        break
"""
        self.run_program(script)
        self.assertEqual(sorted(self.leaks().values()), [0, MEGABYTE, 2 * MEGABYTE, 3 * MEGABYTE])

    def test_forks_while_threads_allocate_and_free(self):
        script = f"""
def work():
    while not finished:
        library.give(take(1000))
finished = []
with memory(mode=sys.argv[3]) as recording:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(8):
        child = os.fork()
        if child == 0:
            take({MEGABYTE})
            os._exit(7 if recording.live().current().bytes >= {MEGABYTE} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    finished.append(True)
    for thread in threads:
        thread.join()
"""
        for mode in ("history", "aggregate"):
            with self.subTest(mode):
                self.run_program(script, mode)
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))


class Multiprocessing(ProcessCase):
    SCRIPT = """
import multiprocessing

def work(size):
    kept.append(take(size))

kept = []
if __name__ == "__main__":
    multiprocessing.set_executable(os.environ["STACKWEAVE_TEST_PYTHON"])
    context = multiprocessing.get_context(sys.argv[3])
    with memory(subprocesses=True):
        workers = [context.Process(target=work, args=((number + 1) * 1_000_000,)) for number in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(*(worker.exitcode for worker in workers))
"""

    def test_workers_record_with_each_start_method(self):
        script = os.path.join(self.folder, "program.py")
        with open(script, "w") as file:
            file.write(BEGIN + self.SCRIPT)
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                done = subprocess.run(
                    [PYTHON, "-W", "ignore::DeprecationWarning", script, self.path, library_path(), method],
                    capture_output=True,
                    text=True,
                    cwd=ROOT,
                    env={**os.environ, "STACKWEAVE_TEST_PYTHON": PYTHON},
                    timeout=120,
                )
                self.assertEqual((done.stdout, done.stderr), ("0 0\n", ""))
                used = sorted(self.leaks().values())
                self.assertEqual([size for size in used if size], [MEGABYTE, 2 * MEGABYTE])
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))


class Programs(ProcessCase):
    CHILD = f"""
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.take.restype = ctypes.c_void_p
library.take.argtypes = [ctypes.c_size_t]
kept = library.take({5 * MEGABYTE})
print("stackweave" in sys.path[0], sorted(sys.argv[2:]))
"""

    def start(self, subprocesses):
        script = f"""
import subprocess
child = {self.CHILD!r}
with memory(subprocesses={subprocesses}):
    subprocess.run([os.environ["STACKWEAVE_TEST_PYTHON"], "-c", child, sys.argv[2], "x"], check=True)
    assert ("_subprocess_site" in os.environ.get("PYTHONPATH", "")) == {subprocesses}
assert "STACKWEAVE_RECORDER" not in os.environ
assert "_subprocess_site" not in os.environ.get("PYTHONPATH", "")
"""
        return self.run_program(script, STACKWEAVE_TEST_PYTHON=PYTHON)

    def test_programs_record_without_being_changed(self):
        self.assertEqual(self.start(True), "False ['x']\n")
        self.assertEqual(sorted(self.leaks().values()), [0, 5 * MEGABYTE])

    def test_programs_do_not_record_by_default(self):
        self.assertEqual(self.start(False), "False ['x']\n")
        self.assertEqual(self.files(), ["out.swv"])

    def test_a_program_of_another_environment_needs_no_package(self):
        script = f"""
import subprocess
child = {self.CHILD!r} + "print(sys.path.count(sys.modules['stackweave'].__path__[0].rpartition('/')[0]))"
with memory(subprocesses=True):
    environment = {{**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"].split(os.pathsep)[0]}}
    command = [os.environ["STACKWEAVE_TEST_PYTHON"], "-c", child, sys.argv[2]]
    subprocess.run(command, check=True, env=environment)
"""
        shown = self.run_program(script, STACKWEAVE_TEST_PYTHON=PYTHON)
        self.assertEqual(shown.splitlines(), ["False []", "0"], "the package is not added to sys.path")
        self.assertEqual(sorted(self.leaks().values()), [0, 5 * MEGABYTE])

    def test_programs_that_can_not_record_run_all_the_same(self):
        script = """
import subprocess
with memory(subprocesses=True):
    others = [] if "PYTHONHOME" in os.environ else [["-E"], ["-I"]]
    for options in (["-S"], *others):
        command = [os.environ["STACKWEAVE_TEST_PYTHON"], *options, "-c", "print('ran')"]
        subprocess.run(command, check=True)
    os.environ["STACKWEAVE_RECORDER"] = "nonsense"
    subprocess.run([os.environ["STACKWEAVE_TEST_PYTHON"], "-c", "print('ran')"], check=True)
"""
        shown = self.run_program(script, STACKWEAVE_TEST_PYTHON=PYTHON)
        self.assertEqual(shown, "ran\n" * (2 if "PYTHONHOME" in os.environ else 4))
        self.assertEqual(self.files(), ["out.swv"])

    def test_the_sitecustomize_of_the_program_runs_as_well(self):
        folder = os.path.join(self.folder, "site")
        os.mkdir(folder)
        with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
            file.write("import sys\nsys.customized = __name__, __file__\n")
        script = """
import subprocess
child = "import sys; print(*sys.customized, sys.modules['sitecustomize'].__file__)"
with memory(subprocesses=True):
    subprocess.run([os.environ["STACKWEAVE_TEST_PYTHON"], "-c", child], check=True)
"""
        path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        shown = self.run_program(script, STACKWEAVE_TEST_PYTHON=PYTHON, PYTHONPATH=path)
        customized = os.path.join(folder, "sitecustomize.py")
        self.assertEqual(shown.split(), ["sitecustomize", customized, customized])
        self.assertEqual(len(self.files()), 2)

    def test_a_program_may_choose_other_options(self):
        child = f"""
import stackweave, sys
{self.CHILD.strip().replace("kept =", "before =")}
with stackweave.memory.from_environment(native=False) as memory:
    kept = library.take({7 * MEGABYTE})
    print(memory.live().leaks().rows[0].bytes)
"""
        script = f"""
import subprocess
with memory(subprocesses=True):
    subprocess.run([os.environ["STACKWEAVE_TEST_PYTHON"], "-c", {child!r}, sys.argv[2]], check=True)
"""
        shown = self.run_program(script, STACKWEAVE_TEST_PYTHON=PYTHON)
        self.assertEqual(shown.splitlines()[1], str(7 * MEGABYTE))
        self.assertEqual(len(self.files()), 2, "what was recorded before is not kept")
        self.assertIsNone(stackweave.memory.from_environment())

    def test_a_recording_is_written_before_exec(self):
        script = f"""
recording = memory(flush_every=1000).start()
take({MEGABYTE})
os.execv(sys.argv[3], [sys.argv[3], "-c", "print('another program')"])
"""
        self.assertEqual(self.run_program(script, PYTHON), "another program\n")
        self.assertEqual(list(self.leaks().values()), [MEGABYTE])


class Endings(ProcessCase):
    def test_a_recording_is_complete_however_its_program_ends(self):
        for ending, status, stderr in [
            ("pass", 0, ""),
            ("sys.exit(4)", 4, ""),
            ("1 / 0", 1, r".*ZeroDivisionError.*"),
            ("raise KeyboardInterrupt", -signal.SIGINT, r".*KeyboardInterrupt.*"),
            ("threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", 0, ""),
        ]:
            with self.subTest(ending):
                script = f"recording = memory(overwrite=True).start()\ntake({MEGABYTE})\n{ending}\n"
                self.run_program(script, status=status, stderr=stderr)
                opened = stackweave.open(self.path)
                self.assertEqual(opened.info()["missing"], [])
                self.assertEqual(list(self.leaks().values()), [MEGABYTE])
                os.remove(self.path)

    def test_what_was_flushed_survives_a_kill(self):
        for mode in ("history", "aggregate"):
            for ending in ("signal.pause()", "os._exit(0)", "os.kill(os.getpid(), signal.SIGSEGV)"):
                with self.subTest(mode=mode, ending=ending):
                    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
recording = memory(flush_every=1000, mode={mode!r}).start()
for _ in range(100):
    take(10_000)
recording.dump()
print("ready", flush=True)
{ending}
"""
                    command = [PYTHON, "-c", BEGIN + script, self.path, library_path()]
                    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
                        self.assertEqual(process.stdout.readline(), "ready\n")
                        if "pause" in ending:
                            process.kill()
                        process.wait(60)
                    self.assertEqual(list(self.leaks().values()), [MEGABYTE])
                    os.remove(self.path)

    def test_destructors_and_daemons_at_the_end(self):
        script = """
class Late:
    def __del__(self):
        library.give(library.take(1000))
        raise ValueError("late")

def work():
    while True:
        library.give(library.take(1000))

recording = memory().start()
late = [Late()]
late.append(late)
threading.Thread(target=work, daemon=True).start()
"""
        self.run_program(script, stderr=r"(Exception ignored .*late.*)?")
        self.assertEqual(stackweave.open(self.path).info()["missing"], [])

    def test_an_exception_leaves_a_snapshot_and_an_instant(self):
        script = f"""
sys.excepthook = lambda *error: os._exit(5)
recording = memory(flush_every=1000, mode="aggregate").start()
take({MEGABYTE})
raise ValueError("x")
"""
        self.run_program(script, status=5)
        self.assertEqual(list(self.leaks().values()), [MEGABYTE])
        names = [event.name for event in stackweave.open(self.path).events() if event.role == "instant"]
        self.assertIn("unhandled exception", names)


class OutOfMemory(ProcessCase):
    LIMITED = """
import resource
sys.excepthook = lambda *error: os._exit(5)
recording = memory(flush_every=1000, {options}).start()
kept = [bytearray(1_000_000) for _ in range(10)]
limit = 4 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
bytearray(1 << 40)
"""

    def test_figures_are_written_when_memory_runs_out(self):
        for options in ('mode="aggregate"', 'ring="1MB"', 'dump_on=["memory-error"]'):
            with self.subTest(options):
                self.run_program(self.LIMITED.format(options=options), status=5)
                usage = stackweave.open(self.path).memory().leaks()
                self.assertGreaterEqual(usage.bytes, 10 * MEGABYTE)
                os.remove(self.path)

    def test_a_program_can_handle_a_memory_error(self):
        script = """
import resource
with memory() as recording:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    try:
        bytearray(1 << 40)
    except MemoryError:
        print("handled")
    take(1_000_000)
"""
        self.assertEqual(self.run_program(script), "handled\n")
        self.assertEqual(list(self.leaks().values()), [MEGABYTE])


class Dumps(ProcessCase):
    def test_a_signal(self):
        for options in ('mode="aggregate"', "", 'ring="1MB"'):
            with self.subTest(options):
                script = f"""
before = []
signal.signal(signal.SIGUSR1, lambda *_: before.append(1))
recording = memory(flush_every=1000, dump_signal="USR1", {options}).start()
take({MEGABYTE})
os.kill(os.getpid(), signal.SIGUSR1)
deadline = time.monotonic() + 60
while not before and time.monotonic() < deadline:
    time.sleep(0.01)
while True:
    recording.live().current()
    try:
        if stackweave.open(sys.argv[1]).memory().leaks().bytes >= {MEGABYTE}:
            break
    except stackweave.StackweaveError:
        assert time.monotonic() < deadline
    time.sleep(0.01)
os._exit(len(before))
"""
                self.run_program(script, status=1)
                self.assertEqual(list(self.leaks().values()), [MEGABYTE])
                os.remove(self.path)

    def test_a_size(self):
        for options in ('mode="aggregate"', 'ring="1MB"'):
            with self.subTest(options):
                script = f"""
with open("/proc/self/statm") as file:
    resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
recording = memory(flush_every=1000, dump_at_rss=resident + 60_000_000, {options}).start()
take({MEGABYTE})
kept = bytearray(b"x") * 100_000_000
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    time.sleep(0.02)
    try:
        if stackweave.open(sys.argv[1]).memory().leaks().bytes >= 100_000_000:
            os._exit(9)
    except stackweave.StackweaveError:
        pass
"""
                self.run_program(script, status=9)
                self.assertGreaterEqual(list(self.leaks().values()), [MEGABYTE])
                os.remove(self.path)
