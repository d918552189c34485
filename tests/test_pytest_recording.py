"""The plugin for pytest makes a recording for each test."""

import importlib.util
import os
import re
import subprocess
import unittest

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

TOOLS = os.environ.get("STACKWEAVE_TEST_TOOLS", "")
HAS_PYTEST = bool(TOOLS) or importlib.util.find_spec("pytest") is not None
HAS_XDIST = bool(TOOLS and os.path.isdir(os.path.join(TOOLS, "xdist"))) or importlib.util.find_spec("xdist") is not None
BEGIN = """
import os, pytest, stackweave, unittest

def total(numbers):
    return sum(square(number) for number in numbers)

def square(number):
    return number * number
"""


@unittest.skipUnless(HAS_PYTEST, "pytest is not installed")
class TestRecordings(RecordingCase):
    def pytest(self, code, *arguments, status=0, name="test_shop.py"):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(BEGIN + code)
        command = [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--rootdir", self.folder]
        search = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), TOOLS]))
        done = subprocess.run(
            [*command, *arguments, name],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": search},
            timeout=120,
        )
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def files(self, folder=".stackweave"):
        return sorted(name for name in os.listdir(os.path.join(self.folder, folder)) if name.endswith(".swv"))

    def opened(self, name, folder=".stackweave"):
        return stackweave.open(os.path.join(self.folder, folder, name))

    def calls(self, name):
        """Returns calls by name only, because the class is not known before 3.11."""
        return {row.name.rpartition(".")[2]: row.calls for row in self.opened(name).top(measure="time")}

    def test_each_test_has_a_recording(self):
        shown = self.pytest(
            """
@pytest.fixture
def numbers():
    return [square(1), 2, 3]

def test_total(numbers):
    assert total(numbers) == 14

@pytest.mark.parametrize("size", [1, "a/b", "a b"])
def test_sizes(size):
    total([])

class TestCart(unittest.TestCase):
    def test_unit(self):
        total([1])

def test_slow():
    total(range(20_000))
""",
            "--stackweave=trace",
            name="shop/test_shop.py",
        )
        self.assertEqual(len(self.files()), 6)
        self.assertLessEqual(
            {
                "shop.test_shop--test_total.swv",
                "shop.test_shop--TestCart.test_unit.swv",
                "shop.test_shop--test_slow.swv",
            },
            set(self.files()),
        )
        calls = self.calls("shop.test_shop--test_total.swv")
        self.assertEqual((calls["test_total"], calls["total"], calls["square"]), (1, 1, 3), "fixtures are not recorded")
        self.assertFalse({name for name in calls if "pytest" in name or "record_" in name}, calls)
        self.assertEqual(self.calls("shop.test_shop--TestCart.test_unit.swv")["test_unit"], 1)
        self.assertRegex(
            shown, r"=+ stackweave =+\n+6 recordings in \.stackweave/; the slowest:\n( +[\d.]+ m?s  \S+::.*\n){5}"
        )
        self.assertRegex(shown, r"Next: stackweave report \.stackweave/shop\.test_shop--\S+\.swv\n")
        with open(os.path.join(self.folder, ".stackweave", ".gitignore")) as file:
            self.assertEqual(file.read(), "*\n")
        again = self.pytest("def test_slow(): square(1)", "--stackweave=trace", name="shop/test_shop.py")
        self.assertIn("1 recording in .stackweave/:\n", again)
        self.assertNotIn("total", self.calls("shop.test_shop--test_slow.swv"), "it is recorded again")

    def test_memory_and_both(self):
        code = """
def test_small():
    bytearray(1_000_000)

def test_large():
    bytearray(9_000_000)
"""
        shown = self.pytest(code, "--stackweave=memory", "--stackweave-folder", "kept")
        self.assertRegex(
            shown,
            r"2 recordings in kept/; the largest at their peak:\n"
            r" +8\.5\d MiB  test_shop\.py::test_large\n +97\d KiB  test_shop\.py::test_small\n",
        )
        tree = self.opened("test_shop--test_large.swv", "kept").tree(measure="peak")
        largest = max(tree.children, key=lambda each: each.total)
        self.assertEqual(largest.name, "test_large", "stacks begin in the test")
        shown = self.pytest(code, "-o", "stackweave=record", "-k", "large")
        self.assertEqual(self.files(), ["test_shop--test_large.swv"])
        self.assertEqual(self.calls("test_shop--test_large.swv"), {"test_large": 1})
        self.assertGreater(self.opened("test_shop--test_large.swv").memory().peak().bytes, 8_500_000)

    def test_failures_stay_failures(self):
        code = """
def test_fails():
    assert total([2]) == 5

def test_works():
    total([1])

@pytest.mark.skip
def test_skipped():
    pass

@pytest.mark.xfail(strict=True)
def test_known():
    raise OSError("known")
"""
        shown = self.pytest(code, "--stackweave=trace", status=1)
        self.assertRegex(
            shown, r"(?s)assert 4 == 5.*- stackweave -.*recorded in \.stackweave/test_shop--test_fails\.swv"
        )
        self.assertNotIn("record_function", shown)
        self.assertRegex(shown, r"test_shop\.py::test_fails  \(failed\)")
        self.assertIn("1 failed, 1 passed, 1 skipped, 1 xfailed", shown)
        self.assertEqual(len(self.files()), 3)
        marks = [
            event.details for event in self.opened("test_shop--test_fails.swv").events() if event.role == "instant"
        ]
        self.assertEqual([mark["type"] for mark in marks], ["builtins.AssertionError"])
        for name in self.files():
            os.unlink(os.path.join(self.folder, ".stackweave", name))
        self.pytest(code, "--stackweave=trace", "--stackweave-only-failed", status=1)
        self.assertEqual(self.files(), ["test_shop--test_fails.swv"])

    def test_files_of_forked_processes_go_with_their_test(self):
        code = """
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forks():
    if os.fork() == 0:
        square(1)
        os._exit(0)
    os.wait()
"""
        for _ in range(2):
            self.pytest(code, "--stackweave=trace")
            self.assertEqual(len(self.files()), 2, "those of the run before are replaced")
        self.pytest(code, "--stackweave=trace", "--stackweave-only-failed")
        self.assertEqual(self.files(), [])

    def test_a_recording_that_can_not_be_read_changes_no_outcome(self):
        shown = self.pytest(
            """
def test_cuts_it():
    os.truncate(os.path.join(os.path.dirname(__file__), ".stackweave", "test_shop--test_cuts_it.swv"), 5)

def test_other():
    square(1)
""",
            "--stackweave=record",
        )
        self.assertIn("2 passed", shown)
        self.assertRegex(shown, r"not recorded, because its recording can't be read: .*: test_shop\.py::test_cuts_it\n")
        self.assertIn("1 recording in .stackweave/:\n", shown)

    def test_fixtures_can_be_recorded(self):
        self.pytest(
            """
@pytest.fixture
def numbers():
    yield [square(1)]
    square(2)

def test_total(numbers):
    total(numbers)
""",
            "--stackweave=trace",
            "--stackweave-fixtures",
        )
        calls = self.calls("test_shop--test_total.swv")
        self.assertEqual(calls["square"], 3)
        self.assertLessEqual({"setup", "call", "teardown"}, set(calls))

    def test_coroutines(self):
        with open(os.path.join(self.folder, "conftest.py"), "w") as file:
            file.write(
                """
import asyncio, inspect, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        asyncio.run(pyfuncitem.obj())
        return True
"""
            )
        self.pytest(
            """
async def test_waits():
    import asyncio
    await asyncio.sleep(0)
    total([1, 2])
""",
            "--stackweave=trace",
        )
        calls = self.calls("test_shop--test_waits.swv")
        self.assertEqual((calls["total"], calls["square"]), (1, 2))
        self.assertIn("test_waits", calls)

    def test_a_test_that_records_itself_goes_first(self):
        shown = self.pytest(
            """
def test_own(tmp_path):
    with stackweave.trace(tmp_path / "own.swv") as trace:
        total([1, 2])
    assert {row.name: row.calls for row in trace.recording.top()}["square"] == 2

@pytest.fixture(scope="module")
def around(tmp_path_factory):
    with stackweave.trace(tmp_path_factory.mktemp("x") / "around.swv"):
        yield

def test_inside(around):
    total([1])

def test_later():
    total([1])
""",
            "--stackweave=trace",
        )
        self.assertIn("not recorded, because it records itself: test_shop.py::test_own\n", shown)
        self.assertRegex(
            shown,
            r"not recorded, because <stackweave\.TraceRecorder .*> is on: test_shop\.py::test_inside and 1 more\n",
        )
        self.assertEqual(self.files(), [])

    def test_marks_of_memory(self):
        code = """
@pytest.mark.stackweave_limit("1 MB")
def test_limited():
    bytearray(2_000_000)

def test_free():
    total([1])
"""
        shown = self.pytest(code, "--stackweave=memory", status=1)
        self.assertIn("not recorded, because its mark records its memory: test_shop.py::test_limited\n", shown)
        self.assertIn("1 MB are allowed", shown)
        self.assertEqual(self.files(), ["test_shop--test_free.swv"])
        shown = self.pytest(code, "--stackweave=record", status=1)
        self.assertIn("1 MB are allowed", shown)
        self.assertIn("test_limited", self.calls("test_shop--test_limited.swv"), "calls can be recorded all the same")

    def test_impossible_options_are_reported_in_one_sentence(self):
        path = os.path.join(self.folder, "test_shop.py")
        with open(path, "w") as file:
            file.write("def test_it(): pass\n")
        search = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), TOOLS]))
        for arguments, sentence in (
            (
                ["--stackweave=record", "--stackweave-peaks"],
                "--stackweave=record and --stackweave-peaks both record memory",
            ),
            (["-o", "stackweave=sleep"], "stackweave must be trace, memory or record, but is 'sleep'"),
        ):
            command = [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", *arguments, path]
            environment = {**os.environ, "PYTHONPATH": search}
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=environment, timeout=60)
            self.assertEqual(done.returncode, 4, done.stdout)
            self.assertRegex(done.stderr, rf"ERROR: {re.escape(sentence)}")

    @unittest.skipUnless(HAS_XDIST, "pytest-xdist is not installed")
    def test_several_processes(self):
        shown = self.pytest(
            """
@pytest.mark.parametrize("number", range(6))
def test_number(number):
    total(range(number))
""",
            "--stackweave=trace",
            "-n",
            "2",
        )
        self.assertIn("6 recordings in .stackweave/; the slowest:\n", shown)
        self.assertEqual(len(self.files()), 6)
        self.assertEqual(sorted(self.calls(name).get("square", 0) for name in self.files()), list(range(6)))

    def test_long_names(self):
        self.pytest(
            f"""
@pytest.mark.parametrize("text", ["{"x" * 400}", "{"x" * 400}y"], ids=str)
def test_text(text):
    square(1)
""",
            "--stackweave=trace",
        )
        self.assertEqual(len(self.files()), 2)
        self.assertLess(max(map(len, self.files())), 200)
