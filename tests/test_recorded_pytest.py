"""`stackweave trace|memory|record -m pytest`: the same outcomes and the same warnings as without the command."""

import os
import re
import unittest

import stackweave
from tests.command_support import CommandCase
from tests.support import PYTHON, run_on_oldest_and_newest
from tests.test_memory_pytest import HAS_PYTEST, TOOLS

setUpModule = run_on_oldest_and_newest

TESTS = """
import warnings, pytest

def test_passes(tmp_path):
    assert tmp_path.exists()

def test_fails():
    assert [1, 2] == [1, 3]

@pytest.mark.skip
def test_skipped(): pass

def test_warns():
    with pytest.warns(UserWarning):
        warnings.warn("one", UserWarning)
"""
CONFIGURATIONS = {
    "strict": "[pytest]\nfilterwarnings = error\n",
    "strict_for_all": "[pytest]\naddopts = -W error --strict-markers --strict-config\n",
    "plain": "[pytest]\n",
}


@unittest.skipUnless(HAS_PYTEST, "pytest is not installed")
class RecordedPytest(CommandCase):
    def setUp(self):
        super().setUp()
        self.write("suite/test_suite.py", TESTS)
        self.search = os.pathsep.join(filter(None, [self.installed(), TOOLS]))

    def installed(self):
        """Makes a folder with the package as an installer does: with a list of its files, and its entry points."""
        package = os.path.dirname(os.path.abspath(stackweave.__file__))
        folder = os.path.join(self.folder, "installed")
        os.makedirs(folder)
        os.symlink(package, os.path.join(folder, "stackweave"))
        files = [f"stackweave/{name}" for name in sorted(os.listdir(package)) if name.endswith((".py", ".so"))]
        self.write("installed/stackweave-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: stackweave\nVersion: 1\n")
        self.write("installed/stackweave-1.dist-info/RECORD", "".join(f"{name},,\n" for name in files))
        self.write(
            "installed/stackweave-1.dist-info/entry_points.txt",
            "[pytest11]\nstackweave = stackweave.pytest_plugin\n",
        )
        return folder

    def ended(self, *before):
        arguments = ["-m", "pytest", "-p", "no:cacheprovider", "-rA"]
        status, output, errors = self.run_in(
            os.path.join(self.folder, "suite"),
            [PYTHON, *before, *arguments],
            PYTHONPATH=self.search,
            PYTHONWARNINGS="",
        )
        text = re.sub(r"in \d+\.\d+s", "in TIME", output.decode())
        errors = "".join(line for line in errors.decode().splitlines(True) if not line.startswith("stackweave: "))
        return status, text, errors

    def test_outcomes_and_warnings_are_those_of_a_plain_run(self):
        for name, configuration in CONFIGURATIONS.items():
            self.write("suite/pytest.ini", configuration)
            plain = self.ended()
            self.assertIn("1 failed, 2 passed, 1 skipped in TIME", plain[1])
            self.assertIn("plugins: ", plain[1])
            self.assertIn("stackweave", plain[1].partition("plugins: ")[2].partition("\n")[0])
            for command in ("trace", "memory", "record"):
                with self.subTest(configuration=name, command=command):
                    path = os.path.join(self.folder, f"{name}.{command}.swv")
                    self.assertEqual(self.ended("-m", "stackweave", command, "-o", path), plain)

    def test_interpreters_that_turn_warnings_into_errors(self):
        self.write("suite/pytest.ini", CONFIGURATIONS["strict"])
        for options in (["-W", "error"], ["-X", "dev", "-W", "error"]):
            plain = self.ended(*options)
            self.assertEqual(plain[0], 1, plain)
            with self.subTest(options=options):
                path = os.path.join(self.folder, f"{len(options)}.swv")
                self.assertEqual(self.ended(*options, "-m", "stackweave", "record", "-o", path), plain)
