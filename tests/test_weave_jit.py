"""Compiled Python frames are woven like interpreted ones. Uses PYTHON_JIT=1 if this Python supports it."""

import sys
import unittest

from tests.support import run_python

HOT_LOOPS = """
import stackweave, sys

capture, is_active, frame = stackweave.capture, sys._jit.is_active, sys._getframe


def account(frame):
    frames = []
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames


def inner(seen):
    seen.append((capture(), is_active(), account(frame())))


def calling(seen):
    for _ in range(6000):
        inner(seen)


def flat(seen):
    for _ in range(6000):
        seen.append((capture(), is_active(), account(frame())))


def sorting(seen):
    def key(value):
        for _ in range(3):
            seen.append((capture(), is_active(), account(frame())))
        return value

    for _ in range(50):
        sorted(range(50), key=key)


def outside_the_sort(captured):
    names = [each.name for each in captured.frames]
    return captured.frames[names.index("key") + 1 : names.index("sorting")]


def check(loop):
    seen = []
    loop(seen)
    compiled = 0
    for captured, was_compiled, stack in seen:
        compiled += was_compiled
        assert captured.frames[0].kind == "python", captured
        python = [(each.filename, each.lineno, each.name) for each in captured.frames if each.kind == "python"]
        assert python == stack, captured
        if captured.stop_reason == "end of stack":
            assert captured.frames[-1].kind == "native", captured
            if loop is sorting:
                between = outside_the_sort(captured)
                assert len(between) >= 2 and {each.kind for each in between} == {"native"}, captured
        else:
            assert was_compiled, captured
    return compiled


print(*(check(loop) for loop in (calling, flat, sorting)))
"""


@unittest.skipUnless(hasattr(sys, "_jit") and sys._jit.is_available(), "this Python has no JIT")
class CompiledLoops(unittest.TestCase):
    def test_captures_from_compiled_code_agree(self):
        compiled = [int(count) for count in run_python(HOT_LOOPS, PYTHON_JIT="1").split()]
        self.assertEqual(len(compiled), 3)
        self.assertTrue(all(compiled), f"not all loops were compiled: {compiled}")
