"""`stackweave record`: the program runs as without it, and its calls and its memory are in one file."""

import os
import re

import stackweave
from tests.command_support import OUTPUT, CommandCase, SamenessCase
from tests.memory_support import bytes_of_library, library_path
from tests.record_support import calls_of
from tests.support import PYTHON

WORK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.take.restype, library.take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.give.argtypes = [ctypes.c_void_p]
def keep(): return library.take(3_000_000)
def use(): library.give(library.take(1_000_000))
kept = keep()
for _ in range(1000): use()
"""


class Sameness(SamenessCase):
    name = "record"

    def test_scripts(self):
        self.run_scripts()

    def test_code(self):
        self.run_code()

    def test_modules_and_flags(self):
        self.run_modules_and_flags()

    def test_standard_input(self):
        self.run_standard_input()


class Messages(CommandCase):
    name = "record"

    def setUp(self):
        super().setUp()
        self.write("work.py", WORK)

    def test_the_last_lines_say_what_was_recorded_and_lead_to_the_report(self):
        message = self.messages("work.py", library_path())
        self.assertRegex(
            message,
            r"\Astackweave: 1,\d\d\d calls in [\d.]+ m?s\n"
            r"stackweave: peak [\d.]+ MiB after [\d.]+ m?s, [\d.]+ MiB in [\d,]+ blocks not freed at the end, "
            r"[\d,]+ allocations\n"
            r"stackweave: recorded in (work\.\d+\.swv) \([\d.]+ [KM]iB\)\. Next: [\w.]+ -m stackweave report \1\n\Z",
        )
        status, output, errors = self.run_in(self.folder, [PYTHON, *message.split("Next: ")[1].split()[1:]])
        self.assertEqual(status, 0, errors)
        self.assertIn(b".html", output + errors)

    def test_both_are_those_of_the_program(self):
        self.messages(*OUTPUT, "-q", "--no-gc", "work.py", library_path())
        opened = stackweave.open(self.path)
        self.assertEqual((calls_of(opened, "use"), calls_of(opened, "keep")), (1000, 1))
        self.assertEqual(bytes_of_library(opened.memory().leaks()), 3_000_000)
        self.assertEqual(bytes_of_library(opened.memory().peak()), 4_000_000)
        folder = os.path.dirname(stackweave.__file__) + os.sep
        called = opened.top(all=True)
        self.assertEqual([row for row in called if (row.filename or "").startswith(folder)], [])
        self.assertNotIn("runpy", " ".join(row.filename or "" for row in called))

    def test_one_of_them_can_be_chosen(self):
        message = self.messages(*OUTPUT, "--no-memory", "work.py", library_path())
        self.assertRegex(message, r"\Astackweave: [\d,]+ calls in .*\nstackweave: recorded in out\.swv.*\n\Z")
        self.assertEqual(calls_of(stackweave.open(self.path), "use"), 1000)
        message = self.messages(*OUTPUT, "--no-calls", "work.py", library_path())
        self.assertRegex(message, r"\Astackweave: peak .*\nstackweave: recorded in out\.swv.*\n\Z")
        opened = stackweave.open(self.path)
        self.assertEqual(calls_of(opened, "use"), 0)
        self.assertEqual(bytes_of_library(opened.memory().leaks()), 3_000_000)

    def test_wrong_arguments_are_refused_in_one_sentence(self):
        for arguments, text in [
            ([], "no program was given"),
            (["--no-calls", "--no-memory", "work.py"], "--no-calls and --no-memory leave nothing to record"),
            (["--no-memory", "--depth", "9", "work.py"], "--no-memory leaves out memory, which --depth apply to"),
            (
                ["--no-calls", "--c-calls", "--include", "x", "work.py"],
                "--no-calls leaves out calls, which --include and --c-calls apply to",
            ),
            (["--buffer", "much", "work.py"], '--buffer must be a size like "64MB"'),
            (["--memory", "1MB", "work.py"], "unrecognized arguments: --memory"),
            (["--mode", "sampled", "--sample-every", "0", "work.py"], "--sample-every must be greater than 0"),
            (["--max-depth", "0", "work.py"], "--max-depth must be greater than 0"),
            (["--min-duration", "long", "work.py"], '--min-duration must be a time like "10us"'),
            (["--dump-signal", "KILL", "work.py"], '--dump-signal must be a signal like "USR1"'),
            (
                ["--mode", "aggregate", "--ring", "1MB", "work.py"],
                "--ring keeps the last events, and --mode aggregate writes none",
            ),
            (["gone.py"], "can't open file"),
        ]:
            with self.subTest(arguments=arguments):
                message = self.messages(*arguments, status=2)
                self.assertRegex(message, rf"\Astackweave record: .*{re.escape(text)}.*\n\Z")
        self.assertEqual(self.files(), [])

    def test_help_has_examples(self):
        status, output, errors = self.run_in(self.folder, [*self.command, "--help"])
        self.assertEqual((status, errors), (0, b""))
        for word in (b"Examples:", b"--no-calls", b"--min-duration", b"--sample-every", b"stackweave report FILE"):
            self.assertIn(word, output)

    def test_every_option_is_accepted(self):
        self.write("x.py", "import sys\nprint(sys.argv, file=sys.stderr)")
        options = ["--c-calls", "--include", "x", "--exclude", "module:json", "--min-duration", "1us"]
        options += ["--max-depth", "9", "--max-events", "1000", "--demote", "--demote=100,1us"]
        options += ["--mechanism", "auto", "--no-gc", "--no-tasks", "--no-torch", "--arguments", "x.f"]
        options += ["--native-stacks", "x.f", "--logs", "--logs=a,info"]
        options += [
            "--mode",
            "sampled",
            "--sample-every",
            "64KiB",
            "--python-allocators",
            "--no-native",
            "--no-mappings",
            "--free-stacks",
        ]
        options += ["--depth", "9", "--temporary", "2", "--curve-every", "1", "--dump-signal", "USR2"]
        options += ["--dump-at-rss", "64GB", "--buffer", "1MB", "--when-full", "drop", "--flush-every", "1"]
        options += ["--no-follow-forks", "--ring", "1MB,10", "--overwrite", "-q", "-o", "out.swv"]
        self.assertEqual(self.messages(*options, "x.py", "-q", "--ring"), "['x.py', '-q', '--ring']\n")
        process = stackweave.open(self.path).info()["processes"][0]
        self.assertTrue(process["ring"])
        self.assertEqual(stackweave.open(self.path).memory().mode, "sampled")

    def test_programs_that_it_starts_record_both(self):
        child = "def f(): return bytearray(2_000_000)\nkept = f()"
        starter = f"import subprocess\nsubprocess.run([{PYTHON!r}, '-c', {child!r}], check=True)"
        message = self.messages(*OUTPUT, "--subprocesses", "-c", starter)
        self.assertRegex(message, r"(?m)^stackweave: 1 other process has its own: .* report out\.swv out\.\*\.swv$")
        (other,) = [name for name in self.files() if name != "out.swv"]
        opened = stackweave.open(os.path.join(self.folder, other))
        self.assertEqual(calls_of(opened, "f"), 1)
        self.assertGreaterEqual(opened.memory().peak().bytes, 2_000_000)
        self.assertNotIn("_record", " ".join(row.filename or "" for row in opened.top(all=True)))

    def test_a_failing_program_has_its_status_and_an_instant(self):
        self.write("fails.py", "def f(): return {}['gone']\nf()")
        status, _, errors = self.run_in(self.folder, [*self.command, *OUTPUT, "fails.py"])
        self.assertEqual(status, 1)
        self.assertIn(b"KeyError: 'gone'", errors)
        opened = stackweave.open(self.path)
        self.assertIn("unhandled exception", [event.name for event in opened.events() if event.role == "instant"])
        self.assertEqual(calls_of(opened, "f"), 1)
        self.messages(*OUTPUT, "-q", "-c", "raise SystemExit(7)", status=7)
