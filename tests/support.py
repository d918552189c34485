"""Shared by all tests."""

import os
import subprocess
import sys
import traceback
import unittest

import stackweave

#: The command that starts the interpreter of the tests.
PYTHON = os.environ.get("STACKWEAVE_TEST_PYTHON", sys.executable)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: The rank of this Python among the tested ones: "oldest", "newest", "between"; "all" runs everything.
ROLE = os.environ.get("STACKWEAVE_TEST_ROLE", "all")
_REASON = "runs on the oldest and the newest Python"
#: Decorates tests that do not depend on the version of Python.
on_oldest_and_newest = unittest.skipIf(ROLE == "between", _REASON)


def run_on_oldest_and_newest():
    """Skips a module whose tests do not depend on the version. Call it in setUpModule."""
    if ROLE == "between":
        raise unittest.SkipTest(_REASON)


def run_on_newest():
    """Skips a long module that does not test Python itself. Call it in setUpModule."""
    if ROLE not in ("newest", "all"):
        raise unittest.SkipTest("runs on the newest Python")


def python_frames(captured):
    """Returns filename, line and name of the Python frames, the innermost first."""
    return [(frame.filename, frame.lineno, frame.name) for frame in captured.frames if frame.kind == "python"]


def kinds(captured):
    return [frame.kind for frame in captured.frames]


def twice(function, *arguments):
    """Returns the last two results of 100 equal calls: by then the interpreter has specialised the code."""
    return [function(*arguments) for _ in range(100)][-2:]


def positions(frame):
    """Returns the position of each frame by its code object, from the innermost frame outward."""
    places = []
    while frame is not None:
        places.append(list(frame.f_code.co_positions())[frame.f_lasti // 2])
        frame = frame.f_back
    return places


class Witness:
    """Captures the stack at each call, and also extracts it with the standard library."""

    def __init__(self):
        self.seen = []

    def __call__(self, *_args, **_kwargs):
        self.seen.append((stackweave.capture(), traceback.extract_stack()))
        if sys.version_info >= (3, 11) and len(self.seen[-1][1]) < 1000:
            self.assert_same_positions(self.seen[-1][0], positions(sys._getframe()))
        return 0

    @staticmethod
    def assert_same_positions(captured, expected):
        ours = [frame for frame in captured.frames if frame.kind == "python"]
        places = [(frame.lineno, frame.end_lineno, frame.colno, frame.end_colno) for frame in ours]
        # The innermost frame has moved on since.
        assert places[1:] == expected[1:], (places, expected)


class WitnessCase(unittest.TestCase):
    def setUp(self):
        self.witness = Witness()

    def assert_same_stacks(self, at_least=1):
        """Asserts that each capture has the frames that the standard library saw, and ends with the native root."""
        self.assertGreaterEqual(len(self.witness.seen), at_least)
        for captured, extracted in self.witness.seen:
            expected = [(frame.filename, frame.lineno, frame.name) for frame in reversed(extracted)]
            self.assertEqual(python_frames(captured), expected)
            self.assertEqual(captured.stop_reason, "end of stack")
            if stackweave.stats()["python"]["reader"] == "direct":
                self.assertEqual(captured.frames[-1].kind, "native", "no Python frame is below the native root")


def run_python(code, *arguments, **environment):
    """Runs a script in a separate Python, and returns what it printed. It must exit with 0 and print no errors."""
    done = subprocess.run(
        [PYTHON, "-X", "faulthandler", "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=120,
    )
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
