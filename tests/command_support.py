"""Shared by the tests of commands that run a program."""

import concurrent.futures
import os
import re
import subprocess

import stackweave
from tests import programs
from tests.recordings import RecordingCase
from tests.support import PYTHON

OUTPUT = ["-o", "out.swv", "--overwrite"]
#: The results of programs that SamenessCase runs without a command. They are the same for all commands.
_PLAIN_ENDS = {}


class CommandCase(RecordingCase):
    """Runs programs with and without a command."""

    #: The name of the command: "trace", "memory".
    name = ""

    @property
    def command(self):
        return [PYTHON, "-m", "stackweave", self.name]

    def run_in(self, folder, command, text="some text", **environment):
        """Returns status, output and errors. Ignores Python's warning about forks, because a recording has a thread."""
        done = subprocess.run(
            command,
            cwd=folder,
            input=text.encode(),
            capture_output=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore:This process:DeprecationWarning", **environment},
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def write(self, name, content=""):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def assert_same(self, name, arguments, options=()):
        """Asserts that a plain run and a recorded one have the same results, except for the lines of the command."""
        plain = self.plain_end([*options, *arguments])
        recorded = self.run_in(
            self.folder, [PYTHON, *options, *self.command[1:], "-o", f"{name}.swv", "--overwrite", *arguments]
        )
        status, output, errors = recorded
        errors = re.sub(rb"^stackweave: .*\n", b"", errors, flags=re.MULTILINE)
        with self.subTest(program=name):
            self.assertEqual(self.neutral((status, output, errors)), plain)
            if os.path.exists(os.path.join(self.folder, f"{name}.swv")):
                stackweave.open(os.path.join(self.folder, f"{name}.swv")).info()

    def plain_end(self, arguments):
        """Returns how it ends and what it prints without a command."""
        return self.neutral(self.run_in(self.folder, [PYTHON, *arguments]))

    def neutral(self, ended):
        """Replaces what differs from run to run, such as the folder of this test."""
        status, *texts = ended
        # First, because a name may look like other text that differs.
        return neutral((status, *(text.replace(self.folder.encode(), b"FOLDER") for text in texts)))

    def assert_all_same(self, cases):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(self.assert_same, *case) for case in cases]:
                done.result()

    def messages(self, *arguments, status=0):
        ended, output, errors = self.run_in(self.folder, [*self.command, *arguments])
        self.assertEqual(ended, status, errors)
        self.assertEqual(output, b"")
        return errors.decode()


class SamenessCase(CommandCase):
    """Asserts what no command may change in a program."""

    maxDiff = None

    def setUp(self):
        super().setUp()
        self.write("neighbour.py", "VALUE = 'mine'\n")
        self.write("argparse.py", "VALUE = 'mine too'\n")

    def plain_end(self, arguments):
        key = tuple(arguments)
        if key not in _PLAIN_ENDS:
            _PLAIN_ENDS[key] = super().plain_end(arguments)
        return _PLAIN_ENDS[key]

    def run_scripts(self):
        for name, code in {**programs.SCRIPTS, **programs.BYTES}.items():
            self.write(f"{name}.py", code)
        self.assert_all_same(
            [(name, [f"{name}.py", "a", "-o", "--help"]) for name in (*programs.SCRIPTS, *programs.BYTES)]
        )

    def run_code(self):
        self.assert_all_same([(name, ["-c", code, "-m", "x"]) for name, code in programs.CODE.items()])

    def run_modules_and_flags(self):
        self.write("pack/__init__.py", "print('init', __name__)")
        self.write("pack/__main__.py", programs.SURROUNDINGS)
        self.assert_all_same(
            [
                ("package", ["-m", "pack", "x"]),
                ("no_module", ["-m", "gone"]),
                ("optimized", ["-m", "pack"], ["-O"]),
                ("strict", ["-m", "pack"], ["-W", "error", "-X", "dev"]),
            ]
        )

    def run_standard_input(self):
        code = programs.SURROUNDINGS + "\n1 / 0"
        plain = self.run_in(self.folder, [PYTHON, "-", "x"], code)
        recorded = self.run_in(self.folder, [*self.command, "-q", *OUTPUT, "-", "x"], code)
        self.assertEqual(neutral(recorded), neutral(plain))


def neutral(ended):
    """Replaces addresses and numbers of processes, which differ from run to run."""
    status, output, errors = ended
    return status, *(
        re.sub(rb"0x[0-9a-f]+|(?<=started )\d+|(?<=ForkProcess-)\d+", b"N", text).decode("latin-1")
        for text in (output, errors)
    )
