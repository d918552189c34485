"""The stack below a program that a command runs has no frame of ours, and none counts for the recursion limit."""

import os

from tests.command_support import OUTPUT, CommandCase
from tests.support import PYTHON

#: Prints how deep functions can call themselves, directly, through C and by creating objects, at three limits.
DEPTHS = """
import sys, threading
def plainly(n=1):
    try:
        return plainly(n + 1)
    except RecursionError:
        return n
def through_c(n=1):
    try:
        return max(map(through_c, [n + 1]))
    except RecursionError:
        return n
class Made:
    def __init__(self, n=1):
        self.n = n
        try:
            self.n = Made(n + 1).n
        except RecursionError:
            pass
def found():
    depths = [sys.getrecursionlimit(), plainly(), through_c(), Made().n, Made().n]
    for limit in (150, 2000):
        sys.setrecursionlimit(limit)
        depths += [sys.getrecursionlimit(), plainly(), through_c()]
    sys.setrecursionlimit(1000)
    return depths
print("main", found())
thread = threading.Thread(target=lambda: print("thread", found()))
thread.start()
thread.join()
"""
#: Prints what a program sees below its own frames, and at its end.
BELOW = """
import atexit, inspect, sys, traceback, warnings
print([(frame.function, frame.lineno) for frame in inspect.stack()], len(traceback.extract_stack()))
depth = 0
while True:
    try:
        sys._getframe(depth)
    except ValueError as error:
        print(depth, error)
        break
    depth += 1
warnings.warn("below", stacklevel=depth + 1)
traceback.print_stack()
atexit.register(lambda: print("at exit", len(inspect.stack())))
def generate():
    yield len(inspect.stack())
print(list(generate()))
"""
ENDS = {"ends": "", "exits": "sys.exit(3)", "fails": "1 / 0", "interrupted": "raise KeyboardInterrupt"}


class StackCase(CommandCase):
    maxDiff = None
    name = "record"

    def assert_as_plain(self, commands, arguments, text=""):
        plain = self.run_in(self.folder, [PYTHON, *arguments], text)
        for command in commands:
            with self.subTest(command=command, arguments=arguments[0]):
                run = [PYTHON, "-m", "stackweave", *command.split(), "-q", *OUTPUT, *arguments]
                self.assertEqual(self.neutral(self.run_in(self.folder, run, text)), self.neutral(plain))
        return plain

    def assert_each_way(self, code):
        """Runs the program as a file, a module, a text and standard input."""
        self.write("program.py", code)
        for arguments in (["program.py"], ["-m", "program"], ["-c", code], ["-"]):
            self.assert_as_plain(["record"], arguments, code if arguments == ["-"] else "")


class Recursion(StackCase):
    def test_programs_get_as_deep_as_in_a_plain_run(self):
        self.assert_each_way(DEPTHS)

    def test_under_every_recorder(self):
        self.write("program.py", DEPTHS)
        commands = ["trace", "memory", "dynamo", "memory --python-allocators"]
        plain = self.assert_as_plain(commands, ["program.py"])
        self.assertIn(b"main [1000, ", plain[1])

    def test_the_limit_is_counted_right_after_the_program(self):
        """Our own code runs below a program that has changed the limit."""
        code = (
            "import sys, atexit\nsys.setrecursionlimit(5000)\natexit.register(lambda: print(sys.getrecursionlimit()))"
        )
        self.write("program.py", code)
        self.assert_as_plain(["trace", "memory", "record"], ["program.py"])


class Below(StackCase):
    def test_there_is_nothing(self):
        for name, end in ENDS.items():
            with self.subTest(end=name):
                self.assert_each_way(BELOW + end)

    def test_the_stack_of_a_module_has_one_frame(self):
        self.write("program.py", "import sys; print(sys._getframe().f_back)")
        _, output, _ = self.run_in(self.folder, [PYTHON, "-m", "stackweave", "trace", "-q", *OUTPUT, "program.py"])
        self.assertEqual(output, b"None\n")
        self.assertTrue(os.path.exists(self.path))
