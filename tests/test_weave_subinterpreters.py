"""Native code that captures in a sub-interpreter gets that interpreter's frames, woven, and they can be named later."""

import unittest

from tests.support import run_python

# The package is imported in the main interpreter only; its function is called from the other as native code would.
CAPTURES = """
import ctypes, stackweave, sys
try:
    import _interpreters as interpreters
    number = interpreters.create("legacy")
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        print("no sub-interpreters")
        sys.exit()
    number = interpreters.create(isolated=False)

stacks = (ctypes.c_uint64 * 4)()
SCRIPT = f'''
import ctypes
capture = ctypes.cast({id(stackweave.current_stack_id)}, ctypes.py_object).value
stacks = (ctypes.c_uint64 * 4).from_address({ctypes.addressof(stacks)})

def key(value):
    stacks[value] = capture()
    return value

def sort():
    sorted([0, 1], key=key)

def descend(depth):
    return descend(depth - 1) if depth else capture()

sort()
stacks[2] = descend(30)
'''


def run_the_other():
    assert interpreters.run_string(number, SCRIPT) is None
    stacks[3] = stackweave.current_stack_id()


def check(when):
    python = []
    for stack in stacks:
        captured = stackweave.traceback_of(stack)
        assert captured.stop_reason == "end of stack" and captured.frames[-1].kind == "native", (when, captured)
        python.append([(frame.name, frame.lineno) for frame in captured.frames if frame.kind == "python"])
    assert python[0] == python[1] == [("key", 7), ("sort", 11), ("<module>", 16)], (when, python[:2])
    assert python[2] == [("descend", 14)] * 31 + [("<module>", 17)], (when, python[2])
    assert [name for name, _ in python[3]] == ["run_the_other", "<module>"], (when, python[3])
    frames = stackweave.traceback_of(stacks[0]).frames
    names = [frame.name for frame in frames]
    between = frames[1 : names.index("sort")]
    assert len(between) >= 2 and {frame.kind for frame in between} == {"native"}, (when, names)


run_the_other()
check("while it is there")
interpreters.destroy(number)
check("when it is gone")
print("checked")
"""


class Subinterpreters(unittest.TestCase):
    def test_captures_in_a_subinterpreter_are_woven(self):
        answer = run_python(CAPTURES).strip()
        if answer == "no sub-interpreters":
            self.skipTest("this Python has no sub-interpreters")
        self.assertEqual(answer, "checked")
