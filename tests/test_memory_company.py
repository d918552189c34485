"""A memory recorder beside another profiler that takes over the slots of allocation functions."""

import atexit
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import stackweave
from tests.memory_support import BEGIN, MemoryCase, library_path
from tests.support import PYTHON

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "slot_patcher.c")
TOOLS = os.environ.get("STACKWEAVE_TEST_TOOLS", "")
HAS_PYTEST = bool(TOOLS) or importlib.util.find_spec("pytest") is not None
HAS_MEMRAY = importlib.util.find_spec("memray") is not None
#: The warning of a recording if another tool held many slots.
SENTENCE = (
    r"Another profiler or allocator \(.*slot_patcher.so\) held \d+ of the \d+ slots "
    r".* a large part of the allocations is missing"
)
OTHER = """
other = ctypes.CDLL(sys.argv[3])

def allocate(blocks):
    for _ in range(blocks):
        library.give(take(1_000_000))
"""


@functools.cache
def patcher_path():
    if not shutil.which("cc"):
        raise unittest.SkipTest("there is no C compiler")
    folder = tempfile.mkdtemp(prefix="stackweave-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "slot_patcher.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", path, SOURCE, "-ldl"], check=True)
    return path


class BesideAnother(MemoryCase):
    def run_beside(self, code, stderr=""):
        return json.loads(
            self.run_script(BEGIN + "import json" + OTHER + code, library_path(), patcher_path(), stderr=stderr)
        )

    def missing(self):
        return "\n".join(stackweave.open(self.path).info()["processes"][0]["missing"])

    def command(self, *arguments, status=0):
        done = subprocess.run([PYTHON, "-m", "stackweave", *arguments], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_without_another_there_is_no_warning(self):
        stats = self.run_beside("""
with memory() as recorder:
    allocate(100)
print(json.dumps(recorder.recorder_stats()))
""")
        self.assertGreaterEqual(stats["allocations"], 100)
        self.assertGreater(stats["block_slots"], 0)
        self.assertEqual((stats["foreign_hooks"], stats["is_largely_foreign"]), (None, False))
        self.assertEqual(self.missing(), "")

    def test_another_that_started_before(self):
        stats = self.run_beside(
            """
recorder = memory()  # imports its modules now: the other does not take over the slots of later ones
other.start()
with recorder:
    allocate(100)
other.stop()
assert other.counted() >= 100
print(json.dumps(recorder.recorder_stats()))
""",
            stderr=f".*RuntimeWarning: {SENTENCE}.*",
        )
        self.assertLess(stats["allocations"], 100)
        self.assertTrue(stats["is_largely_foreign"])
        self.assertRegex(stats["foreign_hooks"], SENTENCE)
        self.assertRegex(self.missing(), SENTENCE)

    def test_another_that_starts_later_in_each_mode(self):
        for options in ("", "mode='aggregate'", "mode='sampled'", "ring='1 MB'", "python_allocators=True"):
            with self.subTest(options):
                stats = self.run_beside(f"""
with memory(overwrite=True, {options}) as recorder:
    allocate(1)
    other.start()
    allocate(100)
print(json.dumps(recorder.recorder_stats()))
""")
                self.assertTrue(stats["is_largely_foreign"])
                self.assertRegex(self.missing(), SENTENCE)

    def test_slots_that_it_restores_are_recorded_again(self):
        stats = self.run_beside("""
with memory() as recorder:
    other.start()
    during = recorder.recorder_stats()
    other.stop()
    after = recorder.recorder_stats()
    before = after["allocations"]
    allocate(100)
    seen = recorder.recorder_stats()["allocations"] - before
print(json.dumps([during["slots"], after["slots"], seen, recorder.recorder_stats()["is_largely_foreign"]]))
""")
        during, after, seen, is_foreign = stats
        self.assertLess(during, after)
        self.assertGreaterEqual(seen, 100)
        self.assertTrue(is_foreign, "another held the slots for a time")

    def test_another_that_starts_and_stops_between_two_checks(self):
        stats = self.run_beside("""
with memory() as recorder:
    for _ in range(20):
        other.start()
        allocate(1)
        other.stop()
print(json.dumps(recorder.recorder_stats()))
""")
        self.assertTrue(stats["is_largely_foreign"])
        self.assertIn("Another profiler or allocator", self.missing())

    def test_a_function_pointer_of_the_program_is_not_another_tool(self):
        stats = self.run_beside("""
before = "decimal" in sys.modules
with memory() as recorder:
    allocate(100)
    recorder.recorder_stats()
    import decimal  # its library has variables that hold malloc, and sets them to other functions
    for _ in range(20):
        decimal.Decimal(1) / 3
        recorder.recorder_stats()
with memory(overwrite=True) as again:
    allocate(100)
assert not before and again.recorder_stats()["foreign_hooks"] is None
print(json.dumps(recorder.recorder_stats()))
""")
        self.assertIsNone(stats["foreign_hooks"])

    def test_it_is_in_the_file_before_the_program_ends(self):
        self.run_script(
            BEGIN
            + OTHER
            + """
recorder = memory()
recorder.start()
other.start()
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    recorder.flush()
    if stackweave.open(sys.argv[1]).info()["processes"][0]["missing"][1:]:
        break
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
""",
            library_path(),
            patcher_path(),
            status=-9,
        )
        self.assertRegex(self.missing(), SENTENCE)

    def test_the_next_recording_has_no_warning(self):
        stats = self.run_beside("""
with memory() as recorder:
    other.start()
    allocate(1)
other.stop()
with memory(overwrite=True) as recorder:
    allocate(100)
print(json.dumps(recorder.recorder_stats()))
""")
        self.assertIsNone(stats["foreign_hooks"])
        self.assertEqual(self.missing(), "")

    def test_every_view_has_the_warning(self):
        program = os.path.join(self.folder, "program.py")
        with open(program, "w") as file:
            file.write(f"""
import ctypes
library, other = ctypes.CDLL({library_path()!r}), ctypes.CDLL({patcher_path()!r})
library.take.restype, library.take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
kept = library.take(1_000_000)
other.start()
""")
        message = self.command("memory", "-o", self.path, program)
        self.assertRegex(message, SENTENCE.replace("Another", "another"))
        for view in ("info", "heap", "top", "tree"):
            self.assertRegex(self.command(view, self.path), SENTENCE, view)
        self.assertRegex(" ".join(json.loads(self.command("heap", "--json", self.path))["remarks"]), SENTENCE)
        page = os.path.join(self.folder, "page.html")
        self.command("report", "-o", page, self.path)
        self.assertTrue(os.path.exists(page))
        message = self.command("diff", "--measure", "peak", "--fail-above", "1000", self.path, self.path, status=1)
        self.assertRegex(message, f"the gate can't be checked, because .* is incomplete: {SENTENCE}")
        self.assertRegex(self.command("diff", "--measure", "peak", self.path, self.path), SENTENCE)

    @unittest.skipUnless(HAS_PYTEST, "pytest is not installed")
    def test_limits_of_tests_fail(self):
        path = os.path.join(self.folder, "test_program.py")
        with open(path, "w") as file:
            file.write(f"""
import ctypes, pytest
other = ctypes.CDLL({patcher_path()!r})
other.start()

@pytest.mark.stackweave_limit("24 MB")
def test_limit():
    pass

@pytest.mark.stackweave_leaks("24 MB")
def test_leaks():
    pass

def test_plain():
    pass
""")
        search = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), TOOLS]))
        for arguments, outcome in (((), "2 failed, 1 passed"), (("--stackweave-peaks",), "2 failed, 1 passed")):
            done = subprocess.run(
                [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments, path],
                cwd=self.folder,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": search},
                timeout=120,
            )
            self.assertIn(outcome, done.stdout)
            for name in ("test_limit", "test_leaks"):
                self.assertRegex(done.stdout, f"the memory of {name} can't be measured. {SENTENCE}")
            if arguments:
                self.assertRegex(done.stdout, f"test_plain is not measured. {SENTENCE}")
                self.assertNotRegex(done.stdout, r"B +\S*test_plain", "no figure for a test that is not measured")


@unittest.skipUnless(HAS_MEMRAY, "memray is not installed")
class BesideMemray(MemoryCase):
    def test_both_orders(self):
        for first, second in (("memray.Tracker(sys.argv[3])", "recorder"), ("recorder", "memray.Tracker(sys.argv[3])")):
            with self.subTest(first):
                results = os.path.join(self.folder, f"{first[0]}.bin")
                printed = self.run_script(
                    BEGIN
                    + f"""
import memray
recorder = memory(overwrite=True)
with {first}, {second}:
    blocks = [take(1_000_000) for _ in range(100)]
print(recorder.recorder_stats()["foreign_hooks"])
""",
                    library_path(),
                    results,
                    stderr=".*",
                )
                self.assertRegex(printed, r"Another profiler .* held \d+ of the \d+ slots .* a large part")
