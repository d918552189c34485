"""Shared by the tests of `stackweave stacks`: blocked programs, and the command."""

import json
import os
import subprocess
import tempfile
import unittest

from tests.support import PYTHON


class StacksCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, program, *arguments):
        """Starts a program, and waits until it reports that it is ready. It ends with the test."""
        path = os.path.join(self.folder, "program.py")
        with open(path, "w") as file:
            file.write(program)
        child = subprocess.Popen(
            [PYTHON, path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder
        )
        self.addCleanup(self.end, child)
        self.assertEqual(child.stdout.readline(), "there\n")
        return child

    @staticmethod
    def end(child):
        child.kill()
        child.communicate()

    @staticmethod
    def run_command(*arguments):
        return subprocess.run(
            [PYTHON, "-m", "stackweave", "stacks", *map(str, arguments)], capture_output=True, text=True, timeout=120
        )

    def stacks(self, process, *arguments):
        done = self.run_command(process, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def text(self, process, *arguments):
        done = self.run_command(process, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


def pid_of(child):
    """Returns the id of a program's process, even if a script starts its interpreter."""
    with open(f"/proc/{child.pid}/task/{child.pid}/children") as file:
        children = file.read().split()
    return int(children[0]) if children else child.pid
