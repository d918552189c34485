"""The programs of examples/ run, and print what their comments show."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import stackweave
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest, run_python

setUpModule = run_on_oldest_and_newest

NEEDS_TORCH = unittest.skipUnless(importlib.util.find_spec("torch") is not None, "torch is not installed")
#: Torch warns if numpy is not installed.
QUIET = {"PYTHONWARNINGS": "ignore"}


class Examples(unittest.TestCase):
    def test_a_woven_stack_shows_native_frames_between_the_python_frames(self):
        shown = run_python("import runpy; runpy.run_path('examples/woven.py', run_name='__main__')")
        rows = iter(shown.splitlines())
        for name in ["<module>", "main", "|", "order_of_letters", "|", "compare", "capture_both", "end of stack"]:
            self.assertTrue(any(name in row for row in rows), f"{name} is missing or out of order:\n{shown}")
        self.assertRegex(shown, r"stackweave\.capture\(\) +[0-9.]+ us")

    @unittest.skipUnless(sys.version_info[:2] == (3, 12), "it takes some seconds, and is run on one version only")
    def test_the_demo_shows_the_slow_function_and_the_leak_and_writes_a_page(self):
        package = os.path.dirname(os.path.dirname(stackweave.__file__))
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [os.path.join(ROOT, "scripts", "demo"), package, folder],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHON": PYTHON},
                timeout=120,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(os.path.getsize(os.path.join(folder, "shop.html")), 500_000)
        self.assertRegex(done.stdout, r"4,000 +.* read_rates ")
        self.assertRegex(done.stdout, r" 204  as_html ")
        self.assertLess(len(done.stdout.splitlines()), 35)

    def test_the_tutorial_shows_the_changes_that_it_applies(self):
        with open(os.path.join(ROOT, "docs", "tutorial.md"), encoding="utf-8") as file:
            page = file.read()
        shown = re.findall(r"```diff\n(.*?)```", page, re.DOTALL)
        # Each is there twice: for readers, and for the test that runs the page.
        applied = list(dict.fromkeys(re.findall(r"^git apply (\S+)$", page, re.MULTILINE)))
        self.assertEqual(len(applied), 2)
        for path, text in zip(applied, shown, strict=True):
            with self.subTest(path=path), open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertEqual(file.read(), text)

    def test_the_example_of_a_trace_runs_and_is_traced(self):
        example = os.path.join(ROOT, "examples", "traced.py")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.swv")
            arguments = ["-m", "stackweave", "trace", "-q", "-o", path, example]
            done = subprocess.run([PYTHON, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            calls = {row.name.rpartition(".")[2]: row.calls for row in stackweave.open(path).top()}
        self.assertEqual((calls["order"], calls["serve"]), (100, 200))
        self.assertEqual(done.stdout, run_python(f"import runpy; runpy.run_path({example!r}, run_name='__main__')"))

    def test_the_example_of_a_memory_recording_runs_and_is_recorded(self):
        example = os.path.join(ROOT, "examples", "memory.py")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.swv")
            arguments = ["-m", "stackweave", "memory", "-q", "-o", path, example]
            done = subprocess.run([PYTHON, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            memory = stackweave.open(path).memory()
            self.assertLessEqual({"requests", "statistics", None}, {group.name for group in memory.tags()})
            self.assertIn("worker", {group.name for group in memory.threads()})
        self.assertEqual(done.stdout, run_python(f"import runpy; runpy.run_path({example!r}, run_name='__main__')"))

    def test_the_example_of_phases_runs_and_can_be_kept(self):
        example = os.path.join(ROOT, "examples", "timing.py")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.swv")
            done = subprocess.run([PYTHON, example, path], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            opened = stackweave.open(path)
            views = {row.name: (row.calls, row.primitive_calls) for row in opened.phases()}
            self.assertEqual(views["part_tree"], (10, 2))
            self.assertEqual([run.failed for run in opened.runs()], [False, False, True, False])
        self.assertIn("returns: no table or view is called complaints\n", done.stdout)

    @NEEDS_TORCH
    def test_the_example_of_a_compilation_runs(self):
        example = os.path.join(ROOT, "examples", "dynamo.py")
        environment = {**os.environ, **QUIET}
        arguments = [PYTHON, example, "aot_eager"]
        done = subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"squashed .*dynamo\.py:\d+")
