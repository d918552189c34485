"""`stackweave memory`: the program runs as without it, and the last lines show the next commands."""

import os
import re

import stackweave
from tests import programs
from tests.command_support import OUTPUT, CommandCase, SamenessCase, neutral
from tests.memory_support import bytes_of_library, library_path
from tests.support import PYTHON, on_oldest_and_newest

#: Allocates three blocks of a million bytes with the library, and frees one.
WORK = """\
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.take.restype, library.take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.give.argtypes = [ctypes.c_void_p]
def work():
    return [library.take(1_000_000) for _ in range(3)]
blocks = work()
library.give(blocks.pop())
"""


class MemoryCommandCase(CommandCase):
    name = "memory"


@on_oldest_and_newest
class Sameness(SamenessCase):
    name = "memory"

    def test_scripts(self):
        self.run_scripts()

    def test_code(self):
        self.run_code()

    def test_modules_and_flags(self):
        self.run_modules_and_flags()

    def test_options_change_nothing(self):
        self.write("surroundings.py", programs.SURROUNDINGS)
        plain = self.run_in(self.folder, [PYTHON, "surroundings.py", "x"])
        for option in ("--python-allocators", "--mode=aggregate", "--mode=sampled", "--no-native", "--free-stacks"):
            with self.subTest(option):
                recorded = self.run_in(self.folder, [*self.command, "-q", *OUTPUT, option, "surroundings.py", "x"])
                self.assertEqual(neutral(recorded), neutral(plain))


class Messages(MemoryCommandCase):
    def test_the_last_lines_say_what_was_used_and_what_to_do(self):
        self.write("work.py", WORK)
        message = self.messages("work.py", library_path())
        self.assertRegex(
            message,
            r"\Astackweave: peak [\d.]+ MiB after [\d.]+ m?s, [\d.]+ MiB in [\d,]+ blocks not freed at the end, "
            r"[\d,]+ allocations\n"
            r"stackweave: recorded in (work\.\d+\.swv) \([\d.]+ [KM]iB\)\. "
            r"Next: ([\w.]+ -m stackweave) heap \1, or \2 report \1\n\Z",
        )
        command = message.split("Next: ")[1].split(",")[0].split()
        done = self.run_in(self.folder, [PYTHON, *command[1:]])
        self.assertEqual(done[0], 0, done[2])
        self.assertRegex(done[1].decode(), r"take +blocks\.so:\d+")

    def test_the_blocks_of_the_program_are_recorded(self):
        self.write("work.py", WORK)
        for options in ([], ["--mode", "aggregate"], ["--no-native"], ["--python-allocators"]):
            with self.subTest(options=options):
                self.messages("-q", *OUTPUT, *options, "work.py", library_path())
                memory = stackweave.open(self.path).memory()
                rows = [row for row in memory.leaks() if any(frame.name == "work" for frame in row.stack)]
                self.assertEqual(sum(row.bytes for row in rows if row.bytes >= 1_000_000), 2_000_000)
                if "--no-native" not in options:
                    self.assertEqual(bytes_of_library(memory.peak()), 3_000_000)
                outermost = [frame.name for frame in rows[0].stack if frame.kind == "python"][1:3]
                self.assertIn("<module>", outermost)

    def test_samples_are_estimates(self):
        self.write("work.py", WORK.replace("1_000_000) for _ in range(3)", "10_000) for _ in range(3000)"))
        message = self.messages(*OUTPUT, "--mode", "sampled", "--sample-every", "20kB", "work.py", library_path())
        self.assertRegex(message, r"\Astackweave: peak about [\d.]+ MiB")

    def test_it_can_be_silent(self):
        self.assertEqual(self.messages("-q", "-c", "1"), "")
        self.assertRegex(self.files()[0], r"\Acode\.\d+\.swv\Z")

    def test_a_file_is_replaced_only_on_request(self):
        self.messages("-q", "-o", "out.swv", "-c", "1")
        message = self.messages("-o", "out.swv", "-c", "raise SystemExit(5)", status=2)
        self.assertEqual(
            message, "stackweave memory: out.swv already exists: name another file with -o, or use --overwrite\n"
        )
        self.messages("-q", *OUTPUT, "-c", "1")

    def test_wrong_arguments_are_refused_in_one_sentence(self):
        self.write("x.py")
        for arguments, text in [
            ([], "no program was given"),
            (["--paint", "x.py"], "unrecognized arguments: --paint"),
            (["--depth", "deep", "x.py"], "--depth: 'deep' is not a whole number"),
            (["--depth", "0", "x.py"], "--depth must be greater than 0"),
            (["--mode", "sampled", "--sample-every", "often", "x.py"], '--sample-every must be a size like "64MB"'),
            (["--sample-every", "1kB", "--mode", "aggregate", "x.py"], "--sample-every needs --mode sampled"),
            (
                ["--mode", "aggregate", "--ring", "1MB", "x.py"],
                "--ring keeps the last events, and --mode aggregate writes none",
            ),
            (["--dump-signal", "HOP", "x.py"], '--dump-signal must be a signal like "USR1"'),
            (["--dump-at-rss", "much", "x.py"], "--dump-at-rss must be a size"),
            (["gone.py"], "can't open file"),
            (["-o", "no/folder/out.swv", "x.py"], "no/folder/out.swv"),
        ]:
            with self.subTest(arguments=arguments):
                message = self.messages(*arguments, status=2)
                self.assertRegex(message, rf"\Astackweave memory: .*{re.escape(text)}.*\n\Z")
        self.assertEqual(self.files(), [])

    def test_help_has_examples(self):
        status, output, errors = self.run_in(self.folder, [*self.command, "--help"])
        self.assertEqual((status, errors), (0, b""))
        for word in (b"Examples:", b"--python-allocators", b"stackweave heap FILE"):
            self.assertIn(word, output)
        self.assertIn(b"memory", self.run_in(self.folder, [PYTHON, "-m", "stackweave", "--help"])[1])

    def test_every_option_is_accepted(self):
        self.write("x.py", "import sys\nprint(sys.argv, file=sys.stderr)")
        options = [
            "--mode",
            "sampled",
            "--sample-every",
            "1MB",
            "--python-allocators",
            "--no-native",
            "--no-mappings",
            "--free-stacks",
            "--depth",
            "9",
        ]
        options += ["--temporary", "3", "--curve-every", "0.1", "--dump-signal", "USR1", "--dump-at-rss", "100GB"]
        options += [
            "--buffer",
            "1MB",
            "--when-full",
            "drop",
            "--flush-every",
            "1",
            "--no-follow-forks",
        ]
        options += ["--ring", "1MB,10", "--subprocesses", "--overwrite", "-q", "-o", "out.swv"]
        self.assertEqual(self.messages(*options, "x.py", "-q", "--ring"), "['x.py', '-q', '--ring']\n")
        self.assertTrue(stackweave.open(self.path).info()["processes"][0]["ring"])

    def test_forked_processes_are_reported(self):
        message = self.messages(*OUTPUT, "-c", "import os\nif os.fork(): os.wait()\nelse: x = bytearray(1000000)")
        self.assertRegex(message, r"(?m)^stackweave: 1 forked process has its own: .* heap out\.swv out\.\*\.swv$")
        self.assertEqual(len(self.files()), 2)

    def test_python_programs_that_it_starts_are_recorded(self):
        self.write("work.py", WORK)
        starter = f"import subprocess\nsubprocess.run([{PYTHON!r}, 'work.py', {library_path()!r}], check=True)"
        message = self.messages(*OUTPUT, "--subprocesses", "-c", starter)
        self.assertRegex(message, r"(?m)^stackweave: 1 other process has its own: .* heap out\.swv out\.\*\.swv$")
        (other,) = [name for name in self.files() if name != "out.swv"]
        leaks = stackweave.open(os.path.join(self.folder, other)).memory().leaks()
        self.assertEqual(bytes_of_library(leaks), 2_000_000)
