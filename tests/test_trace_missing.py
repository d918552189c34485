"""Calls that a trace can't have are counted: in its figures, in the recording and at the end of the program."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.support import PYTHON
from tests.test_weave_evaluators import SOURCE, current_evaluator, interpreter, interpreter_function
from tests.trace_support import TraceCase

SUB_INTERPRETERS = """
try:
    import _interpreters as interpreters
    create = lambda: interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    create = lambda: interpreters.create(isolated=False)

def run_other():
    number = create()
    interpreters.run_string(number, "def f(): pass\\nfor _ in range(100): f()")
    interpreters.destroy(number)
"""


def have_sub_interpreters():
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            __import__(name)
        except ImportError:
            continue
        return True
    return False


@unittest.skipUnless(have_sub_interpreters(), "this Python has no module for sub-interpreters")
class SubInterpreters(TraceCase):
    def test_those_that_came_and_went_are_counted(self):
        namespace = {}
        exec(SUB_INTERPRETERS, namespace)
        with self.tracing(gc=False) as trace:
            pass
        self.assertEqual(trace.tracer_stats()["other_interpreters"], 0)
        with self.tracing(gc=False) as trace:
            namespace["run_other"]()
            namespace["run_other"]()
        self.assertEqual(trace.tracer_stats()["other_interpreters"], 2)

    def test_one_that_was_there_before_is_counted(self):
        namespace = {}
        exec(SUB_INTERPRETERS, namespace)
        number = namespace["create"]()
        try:
            with self.tracing(gc=False) as trace:
                namespace["interpreters"].run_string(number, "pass")
            self.assertEqual(trace.tracer_stats()["other_interpreters"], 1)
        finally:
            namespace["interpreters"].destroy(number)

    def test_the_end_of_the_program_and_the_recording_say_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path, program = os.path.join(folder, "x.swv"), os.path.join(folder, "program.py")
            with open(program, "w") as file:
                file.write(SUB_INTERPRETERS + "\nrun_other()\n")
            for command in ("trace", "record"):
                arguments = [PYTHON, "-m", "stackweave", command, "-o", f"{path}.{command}", program]
                done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("calls are missing in 1 sub-interpreter", done.stderr)
                info = subprocess.run(
                    [PYTHON, "-m", "stackweave", "info", f"{path}.{command}"],
                    capture_output=True,
                    text=True,
                    timeout=120,
                )
                self.assertIn("1 sub-interpreters: calls in them are not recorded", info.stdout + info.stderr)


@unittest.skipUnless(sys.version_info < (3, 12), "the evaluation hook is that of 3.10 and 3.11")
@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class EvaluationHook(TraceCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = os.path.join(folder.name, "evaluator.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-g", "-o", path, SOURCE], check=True)
        cls.library = ctypes.CDLL(path)

    def setUp(self):
        super().setUp()
        self.own = current_evaluator()
        ctypes.c_void_p.in_dll(self.library, "evaluator_next").value = self.own
        self.foreign = ctypes.cast(self.library.evaluator, ctypes.c_void_p).value
        self.addCleanup(self.put_in, self.own)

    @staticmethod
    def put_in(function):
        interpreter_function("SetEvalFrameFunc", None, ctypes.c_void_p, ctypes.c_void_p)(interpreter(), function)

    def trace_while(self, *functions):
        """Returns a trace during which these evaluators are set, one after the other."""
        with self.tracing(gc=False, mechanism="eval") as trace:
            for function in functions:
                self.put_in(function)
        return trace

    def test_an_earlier_tool_that_restores_the_old_evaluator_is_noticed(self):
        self.put_in(self.foreign)
        trace = self.trace_while(self.own)
        self.assertEqual(trace.tracer_stats()["taken_out"], 1)
        self.assertEqual(current_evaluator(), self.own)
        # The next trace is complete.
        trace = self.trace_while()
        self.assertEqual(trace.tracer_stats()["taken_out"], 0)
        self.assertEqual(current_evaluator(), self.own)

    def test_an_earlier_tool_that_sets_its_evaluator_again_is_noticed(self):
        self.put_in(self.foreign)
        trace = self.trace_while(self.own, self.foreign)
        self.assertEqual(trace.tracer_stats()["taken_out"], 1)
        self.assertEqual(current_evaluator(), self.foreign)

    def test_a_later_tool_that_restores_the_evaluator_is_not_counted(self):
        with self.tracing(gc=False, mechanism="eval") as trace:
            ours = current_evaluator()
            ctypes.c_void_p.in_dll(self.library, "evaluator_next").value = ours
            self.put_in(self.foreign)
            self.put_in(ours)
        self.assertEqual(trace.tracer_stats()["taken_out"], 0)

    def test_the_recording_says_so(self):
        self.put_in(self.foreign)
        trace = self.trace_while(self.own)
        info = [PYTHON, "-m", "stackweave", "info", trace.path]
        output = subprocess.run(info, capture_output=True, text=True, timeout=120).stdout
        self.assertIn("1 times the evaluation hook was taken out by another tool", output)
