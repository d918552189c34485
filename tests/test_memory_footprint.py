"""The memory that a memory recorder itself needs, in a program with very many different stacks."""

import os
import subprocess
import unittest

from tests.recordings import RecordingCase
from tests.support import PYTHON

#: A tree of calls: 2 ** DEPTH different stacks, each with three allocations of Python's allocators.
PROGRAM = """
import sys
def left(depth): return [bytearray(100)] if depth == 0 else (left(depth - 1), right(depth - 1))[0]
def right(depth): return [bytearray(100)] if depth == 0 else (left(depth - 1), right(depth - 1))[0]
left(int(sys.argv[1]))
"""
DEPTH = 14
SITES = 3 * 2**DEPTH
MEGABYTE = 1 << 20


class Footprint(RecordingCase):
    def peak(self, *command):
        """Returns the highest resident size of the process, in bytes, and what it printed to stderr."""
        process = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE)
        with process.stderr:
            errors = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, errors)
        return usage.ru_maxrss * 1024, errors

    def test_a_program_with_many_stacks(self):
        program = os.path.join(self.folder, "program.py")
        with open(program, "w") as file:
            file.write(PROGRAM)
        plain, _ = self.peak(PYTHON, program, str(DEPTH))
        command = (PYTHON, "-m", "stackweave", "memory", "--python-allocators", "-o", self.path)
        least, _ = self.peak(*command, program, "0")
        os.unlink(self.path)
        most, errors = self.peak(*command, program, str(DEPTH))
        self.assertIn("allocations", errors, "the summary is made in the same process")
        # The tree of stacks and its index, the figures of each stack, and the numbers of stacks in the file: 190 bytes
        # for each site. A second copy of all figures at the end, or an index entry for each node, exceeds the limit.
        self.assertLess((most - least) / SITES, 280, (plain, least, most))
        self.assertLess(most - plain, 100 * MEGABYTE)


if __name__ == "__main__":
    unittest.main()
