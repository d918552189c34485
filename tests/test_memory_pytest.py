"""The plugin for pytest checks limits and leaks, and lists memory."""

import importlib.util
import os
import re
import subprocess
import unittest

from tests.memory_support import library_path
from tests.recordings import RecordingCase
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

TOOLS = os.environ.get("STACKWEAVE_TEST_TOOLS", "")
HAS_PYTEST = bool(TOOLS) or importlib.util.find_spec("pytest") is not None
BEGIN = f"""
import ctypes, pytest, unittest
library = ctypes.CDLL({library_path()!r})
library.take.restype, library.take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.give.argtypes = [ctypes.c_void_p]

def use(size):
    library.give(library.take(size))
"""


@unittest.skipUnless(HAS_PYTEST, "pytest is not installed")
class Plugin(RecordingCase):
    def pytest(self, code, *arguments, passed=0, failed=0):
        path = os.path.join(self.folder, "test_program.py")
        with open(path, "w") as file:
            file.write(BEGIN + code)
        command = [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "-rA", *arguments, path]
        search = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), TOOLS]))
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": search},
            timeout=120,
        )
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.counts(done.stdout), (passed, failed), done.stdout)
        return done.stdout

    def counts(self, output):
        last = output.strip().splitlines()[-1]
        found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed)", last)}
        return found.get("passed", 0), found.get("failed", 0)

    def test_a_limit(self):
        shown = self.pytest(
            """
@pytest.mark.stackweave_limit("24 MB")
def test_small():
    use(20_000_000)

@pytest.mark.stackweave_limit("24 MB")
def test_large():
    work()

def work():
    use(30_000_000)

class TestUnit(unittest.TestCase):
    @pytest.mark.stackweave_limit("24 MB")
    def test_large(self):
        work()
""",
            passed=1,
            failed=2,
        )
        self.assertRegex(
            shown, r"test_large has 28\.6 MiB in use at its peak, and 24 MB are allowed: 5\.7\d MiB too much"
        )
        self.assertRegex(
            shown, r"(?s)28\.6 MiB .* 1  take .*blocks\.c:\d+\n.* +by use .*\n +by work .*\n +by test_large "
        )
        self.assertNotIn("pluggy/", shown, "only frames of the test are shown")

    def test_leaks(self):
        shown = self.pytest(
            """
kept = []

@pytest.mark.stackweave_leaks("100 kB")
def test_tidy():
    runs.append(1)
    use(5_000_000)

@pytest.mark.stackweave_leaks("100 kB", warmups=2, runs=4)
def test_untidy():
    runs.append(1)
    leak()

@pytest.mark.stackweave_leaks("100 kB")
def test_keeps_objects():
    kept.extend(object() for _ in range(10_000))

@pytest.mark.stackweave_leaks("1 MB", warmups=1)
def test_caches():
    if not cache:
        cache.append(library.take(50_000_000))

def leak():
    library.take(500_000)

runs, cache = [], []

def test_runs():
    assert len(runs) == 4 + 6
""",
            passed=3,
            failed=2,
        )
        self.assertRegex(
            shown,
            r"test_untidy has 48\d KiB more in use each time that it is run, and 100 kB are allowed "
            r"\(4 runs after 2 to warm up\)",
        )
        self.assertRegex(shown, r"(?s)1\.91 MiB .* 4  take .*\n.* +by leak .*\n +by test_untidy ")
        self.assertRegex(shown, r"test_keeps_objects has \d+ KiB more in use")

    def test_coroutines_and_fixtures(self):
        self.pytest(
            """
import asyncio, functools

@pytest.fixture
def size():
    held = library.take(40_000_000)
    yield 1_000_000
    library.give(held)

@pytest.mark.stackweave_limit("2 MB")
def test_fixtures_are_not_counted(size):
    use(size)

@pytest.mark.stackweave_limit("2 MB")
@pytest.mark.stackweave_leaks("10 kB")
@pytest.mark.parametrize("times", [1, 2])
def test_both(size, times):
    for _ in range(times):
        use(size)
""",
            passed=3,
        )

    def test_a_failing_test_fails_as_usual(self):
        shown = self.pytest(
            """
@pytest.mark.stackweave_limit("1 kB")
def test_wrong():
    assert 1 == 2
""",
            failed=1,
        )
        self.assertIn("assert 1 == 2", shown)

    def test_the_list(self):
        code = """
def test_some():
    use(3_000_000)

def test_more():
    use(9_000_000)
"""
        shown = self.pytest(code, "--stackweave-peaks", "--stackweave-peaks-folder", "kept", passed=2)
        self.assertRegex(
            shown,
            r"memory of tests at their peak =+\n +8\.\d+ MiB  test_program\.py::test_more\n"
            r" +2\.\d+ MiB  test_program\.py::test_some\n",
        )
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "kept")))[0], "test_program--test_more.swv")
        alike = """
@pytest.mark.parametrize("size", ["a b", "a/b", "a:b"])
def test_alike(size):
    use(3_000_000)
"""
        self.pytest(alike, "--stackweave-peaks", "--stackweave-peaks-folder", "alike", passed=3)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "alike"))), 3)
        self.assertNotIn("memory of tests", self.pytest(code, passed=2))
        shown = self.pytest(code, "-o", "stackweave_peaks=true", "--stackweave-peaks-top", "1", passed=2)
        self.assertNotRegex(shown, r"MiB  test_program\.py::test_some")

    def test_wrong_marks_are_one_sentence(self):
        shown = self.pytest(
            """
@pytest.mark.stackweave_limit("24 parsecs")
def test_unit():
    pass

@pytest.mark.stackweave_leaks("24 MB", walks=3)
def test_name():
    pass

@pytest.mark.stackweave_limit
def test_nothing():
    pass
""",
            failed=3,
        )
        self.assertIn('@pytest.mark.stackweave_limit: the size must be a size like "64MB"', shown)
        self.assertIn("@pytest.mark.stackweave_leaks: it got an unexpected keyword argument 'walks'", shown)
        self.assertIn('@pytest.mark.stackweave_limit needs a size, as in stackweave_limit("24 MB")', shown)

    def test_a_limit_that_can_not_be_checked_fails(self):
        shown = self.pytest(
            f"""
import stackweave

@pytest.mark.stackweave_limit("1 GB")
def test_measures():
    pass

@pytest.mark.stackweave_leaks("1 GB")
def test_leaks():
    pass

@pytest.fixture(autouse=True)
def recorded():
    with stackweave.memory({self.path!r}, overwrite=True):
        yield
""",
            failed=2,
        )
        self.assertIn("test_measures is not measured: memory is recorded already, by <", shown)
        self.assertIn("test_leaks is not measured: memory is recorded already, by <", shown)

    def test_a_limit_fails_if_the_test_has_ended_its_recording(self):
        shown = self.pytest(
            """
from stackweave._recorders.memory import current_recorder

@pytest.mark.stackweave_limit("1 MB")
def test_stops():
    current_recorder().stop()
    bytearray(50_000_000)

@pytest.mark.stackweave_leaks("1 MB")
def test_pauses():
    current_recorder().pause()
""",
            failed=2,
        )
        self.assertIn("test_stops is not measured: it has stopped its recording", shown)
        self.assertIn("test_pauses is not measured: it has paused its recording", shown)

    def test_a_limit_fails_if_its_recording_lost_events(self):
        shown = self.pytest(
            """
import stackweave._recorders.memory as memory
stop = memory.MemoryRecorder.stop
memory.MemoryRecorder.stop = lambda self: stop(self)._replace(lost={"no memory": 3})

@pytest.mark.stackweave_limit("1 GB")
def test_measures():
    pass
""",
            failed=1,
        )
        self.assertIn("test_measures is not measured: 3 events lost (no memory)", shown)

    def test_without_marks_nothing_is_imported(self):
        shown = self.pytest(
            """
import sys

def test_modules():
    print([name for name in sys.modules if name.startswith("stackweave.")])
""",
            "-s",
            passed=1,
        )
        self.assertIn("['stackweave._native', 'stackweave.pytest_plugin']", shown)
