"""The native frames are those that gdb finds, Python frames are at the eval loops, and neither needs symbols."""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.support import PYTHON, ROOT

#: Calls through native code and through Python, then writes the capture to a file, and stops for a debugger.
PROGRAM = """
import ctypes, functools, signal, sys, stackweave

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def capture():
    captured = stackweave.capture()
    assert captured.stop_reason == "end of stack", captured
    with open(sys.argv[1], "w") as file:
        for frame in captured.frames:
            if not frame.inlined:
                print((frame.kind, frame.name, frame.module, frame.address), file=file)
    with open("/proc/self/maps") as file:
        print("mapped", *{line.split()[-1] for line in file}, flush=True)
    if sys.argv[2:] == ["stop"]:
        signal.raise_signal(signal.SIGTRAP)
    sys.exit()


def compare(_left, _right):
    return functools.reduce(lambda _, value: capture(), [1, 2])


def generate():
    numbers = (ctypes.c_int * 2)(2, 1)
    yield ctypes.CDLL(None).qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), COMPARE(compare))


def inner(_value):
    return list(generate())


def outer():
    return sorted([1], key=inner)


outer()
"""
EVAL_LOOP = "_PyEval_EvalFrameDefault"


def is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def run_program(folder, command, *arguments, **environment):
    """Runs the program under a command, and returns the frames it captured and what was printed."""
    seen, program = os.path.join(folder, "seen"), os.path.join(folder, "program.py")
    with open(program, "w") as file:
        file.write(PROGRAM)
    done = subprocess.run(
        [*command, program, seen, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=120,
    )
    if not os.path.exists(seen):
        raise AssertionError(done.stdout)
    with open(seen) as file:
        return [ast.literal_eval(line) for line in file], done.stdout


@unittest.skipUnless(is_program(shutil.which(PYTHON) or PYTHON), "this Python is started by a script")
class NativeTruth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_native_frames_are_those_that_gdb_finds(self):
        script = os.path.join(ROOT, "tests", "native", "stacks.gdb")
        captured, printed = run_program(
            self.folder, ["gdb", "-nx", "-q", "-batch", "-x", script, "--args", PYTHON], "stop"
        )
        found = [line.split()[1:] for line in printed.splitlines() if line.startswith("frame ")]
        if not found and "ptrace" in printed:
            self.skipTest("gdb may not trace here")
        native = [address for kind, _, _, address in captured if kind == "native"]
        # The innermost loop has continued to the call that stops.
        truth = [int(address, 16) for address, _ in found][-len(native) :]
        self.assertEqual([hex(address) for address in native[1:]], [hex(address) for address in truth[1:]])
        self.assert_python_stands_at_the_loops(captured, [name for _, name in found][-len(native) :])

    def assert_python_stands_at_the_loops(self, captured, functions):
        """Asserts that Python frames are just inside the eval loops that run them, by gdb's names, and nowhere else.

        A part of the loop that the compiler moved away has no name in a stripped interpreter.
        """
        functions, before, loops = iter(functions), None, 0
        for kind, name, _, _ in captured:
            if kind == "native":
                function = next(functions)
                if function.startswith(EVAL_LOOP):
                    self.assertEqual(before, "python", name)
                elif function != "None":
                    self.assertEqual(before, "native", (name, function))
                loops += before == "python"
            before = kind
        calls = 5  # The loops of main, sorted, list, qsort and reduce.
        self.assertEqual(loops, calls if sys.version_info >= (3, 11) else 7, "before 3.11 each frame has its own")

    @unittest.skipUnless(shutil.which("strip"), "there is no strip")
    def test_a_stripped_interpreter_has_the_same_stack(self):
        executable = os.path.realpath("/proc/self/exe")
        with open("/proc/self/maps") as maps:
            libraries = {line.split()[-1] for line in maps if "/libpython3." in line}
        for path in [executable, *libraries]:
            subprocess.run(
                ["strip", "--strip-all", "-o", os.path.join(self.folder, os.path.basename(path)), path], check=True
            )
        stripped = os.path.join(self.folder, os.path.basename(executable))
        home = {"PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}"}
        whole, _ = run_program(self.folder, [executable], **home)
        bare, printed = run_program(self.folder, [stripped], LD_LIBRARY_PATH=self.folder, **home)
        self.assertEqual(self.shape(bare), self.shape(whole))
        for path in [executable, *libraries]:
            self.assertIn(os.path.join(self.folder, os.path.basename(path)), printed.split())

    @staticmethod
    def shape(captured):
        return [(kind, name if kind == "python" else module) for kind, name, module, _ in captured]
