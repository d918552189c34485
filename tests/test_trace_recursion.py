"""Recursion goes as deep as Python allows, and ends with Python's own error."""

import sys
import unittest

from tests.support import run_python
from tests.trace_support import TraceCase

RECURSION = """
import sys
limit, mechanism, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
import threading

def deepest():
    depth = 0
    def down():
        nonlocal depth
        depth += 1
        down()
    try:
        down()
    except RecursionError as error:
        return depth, str(error)

def through_native():
    depth = 0
    def down(_):
        nonlocal depth
        depth += 1
        list(map(down, [1]))
    try:
        down(None)
    except RecursionError as error:
        return depth

def run():
    sys.setrecursionlimit(limit)
    answers.append(deepest())
    answers.append(deepest())
    if limit <= 1000:
        answers.append(through_native())

answers = []
if mechanism != "none":
    import stackweave
    trace = stackweave.trace(path, overwrite=True, mechanism=mechanism, c_calls=len(sys.argv) > 4).start()
threading.stack_size(512 << 20 if limit > 1000 else 0)
thread = threading.Thread(target=run)
thread.start()
thread.join()
if mechanism != "none":
    trace.stop()
    downs = sum(event.role == "begin" and event.name == "down" for event in trace.recording.events())
    called = sum(answer[0] if isinstance(answer, tuple) else answer for answer in answers)
    if sys.version_info[:2] == (3, 11) and mechanism == "eval" and limit > 1000:
        assert 0 < downs <= called, (downs, called)
    else:
        assert abs(downs - called) <= len(answers), (downs, called)
print(answers)
"""


class Recursion(TraceCase):
    """Recursion is as deep as without a trace, and ends with the same error."""

    def answers(self, limit, mechanism, *more):
        return run_python(RECURSION, str(limit), mechanism, self.path, *more)

    def test_to_the_usual_limit(self):
        expected = self.answers(1000, "none")
        for mechanism in self.each_mechanism():
            self.assertEqual(self.answers(1000, mechanism), expected)

    def test_to_a_limit_that_was_raised(self):
        expected = self.answers(30000, "none")
        for mechanism in self.each_mechanism():
            self.assertEqual(self.answers(30000, mechanism), expected)

    def test_with_native_calls(self):
        expected = self.answers(1000, "none")
        self.assertEqual(self.answers(1000, "profile", "native"), expected)

    def test_on_the_usual_stack_with_a_high_limit(self):
        """Calls from Python to Python take no native stack from 3.11 on, and must not with a trace.

        The evaluation hook of 3.11 takes some for each: where that is short, it steps aside, and calls are missing.
        """
        if sys.version_info < (3, 11):
            raise unittest.SkipTest("calls take native stack here")
        script = RECURSION.replace("512 << 20 if limit > 1000 else 0", "0")
        expected = run_python(script, "30000", "none", self.path)
        for mechanism in self.each_mechanism():
            self.assertEqual(run_python(script, "30000", mechanism, self.path), expected)
