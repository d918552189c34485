"""stackweave dynamo does not change the program, and reports how long torch.compile took."""

import importlib.util
import os
import re
import unittest

import stackweave
import stackweave.torch.dynamo
from stackweave._commands.dynamo import ProgramDynamoRecorder
from stackweave._commands.dynamo_summary import lines
from stackweave._commands.recorded_program import Ended
from tests.command_support import OUTPUT, CommandCase, SamenessCase
from tests.support import PYTHON, on_oldest_and_newest

HAS_TORCH = importlib.util.find_spec("torch") is not None
NEEDS_TORCH = unittest.skipUnless(HAS_TORCH, "torch is not installed")

#: Compiles a function for two types. A second function has a backend that fails.
COMPILES = """\
import sys, torch
print(sys.argv, __name__)
def inner(x):
    return x * 2
@torch.compile(backend="eager")
def f(x):
    return inner(x) + 1
def refuse(graph, inputs):
    raise RuntimeError("no")
@torch.compile(backend=refuse)
def g(x):
    return x - 1
f(torch.ones(2))
f(torch.ones(2, dtype=torch.int64))
"""
#: Prints only the type of the exception, as its traceback shows functions of torch.
FAILS = COMPILES + "try:\n    g(torch.ones(2))\nexcept Exception as error:\n    print(type(error).__name__)\n"


class DynamoCommandCase(CommandCase):
    name = "dynamo"

    def run_in(self, folder, command, text="some text", **environment):
        """Ignores warnings: torch warns if numpy is not installed."""
        return super().run_in(folder, command, text, PYTHONWARNINGS="ignore", **environment)


@on_oldest_and_newest
class Sameness(SamenessCase):
    name = "dynamo"

    def test_scripts(self):
        self.run_scripts()

    def test_code(self):
        self.run_code()

    def test_modules_and_flags(self):
        self.run_modules_and_flags()

    def test_programs_from_the_standard_input(self):
        self.run_standard_input()

    def test_a_torch_that_can_not_be_imported_fails_as_without_the_command(self):
        self.write("torch/__init__.py", "raise ImportError('libcudart.so.99: cannot open')")
        self.assert_same("broken", ["-c", "import torch"])
        self.write("torch/__init__.py", "__version__ = '0'")
        self.write("torch/_dynamo/__init__.py", "print('mine')")
        self.assert_same("strange", ["-c", "import torch._dynamo; print(torch._dynamo.__name__)"])

    @NEEDS_TORCH
    def test_programs_that_compile(self):
        self.write("fails.py", FAILS + "raise SystemExit(3)")
        self.write("compiles.py", COMPILES + "def last(): raise KeyError('own')\nlast()")
        self.assert_all_same([("fails", ["fails.py", "-q"]), ("compiles", ["compiles.py", "x"])])


class Said(DynamoCommandCase):
    def test_nothing_compiled_is_one_sentence(self):
        message = self.messages("-c", "1")
        why = "the program has not imported torch" if HAS_TORCH else "this Python has no torch"
        self.assertRegex(message, rf"\Astackweave: nothing was compiled, so code\.\d+\.swv is empty: {why}\n\Z")
        self.write("torch/__init__.py", "")
        message = self.messages(*OUTPUT, "-c", "import torch")
        self.assertEqual(
            message, "stackweave: nothing was compiled, so out.swv is empty: the program has not called torch.compile\n"
        )

    @NEEDS_TORCH
    def test_a_function_that_is_never_called_is_not_compiled(self):
        self.write("idle.py", "import torch, torch._dynamo\n@torch.compile\ndef f(x): return x")
        self.assertRegex(
            self.messages(*OUTPUT, "idle.py"), r"\Astackweave: nothing was compiled.* has been called here.*\n\Z"
        )

    @NEEDS_TORCH
    def test_the_last_line_says_what_it_took_and_what_to_do(self):
        self.write("fails.py", FAILS)
        status, _, errors = self.run_in(self.folder, [*self.command, "fails.py"])
        message = errors.decode()
        self.assertEqual(status, 0, message)
        self.assertRegex(
            message,
            r"\Astackweave: 3 compilations took [\d.]+ m?s of [\d.]+ m?s \(1 of them recompiled, 1 failed\), "
            r"recorded in (fails\.\d+\.swv) \([\d.]+ (KiB|B)\)\. "
            r"Next: ([\w.]+ -m stackweave) phases \1, or \3 report \1\n\Z",
        )
        done = self.run_in(self.folder, [PYTHON, *message.split("Next: ")[1].split(",")[0].split()[1:]])
        self.assertEqual(done[0], 0, done[2])
        self.assertRegex(done[1].decode(), r"(?m)^.*inner.*fails\.py")

    @NEEDS_TORCH
    def test_the_tables_can_be_shown_at_once(self):
        self.write("compiles.py", COMPILES)
        shown = self.run_in(self.folder, [*self.command, *OUTPUT, "--report", "compiles.py"])[2].decode()
        self.assertRegex(shown, r"\Astackweave: where the time of compilation went:\n\n")
        self.assertRegex(shown, r"(?m)^.*inner.*compiles\.py")
        self.assertRegex(shown, r"(?m)^stackweave: 2 compilations took .*\n\Z")

    @NEEDS_TORCH
    def test_programs_may_have_profiles_of_their_own(self):
        own = "import stackweave.torch.dynamo\nprofile = stackweave.torch.dynamo.profile()\n"
        prints = (
            "print(len(stackweave.torch.dynamo.compiles(profile.recording)), profile.stop().path, file=sys.stderr)\n"
        )
        self.write("own.py", own + COMPILES + prints + "f(torch.ones(2, dtype=torch.float64))")
        message = self.run_in(self.folder, [*self.command, *OUTPUT, "own.py"])[2].decode()
        self.assertRegex(message, r"\A2 \nstackweave: 3 compilations took ")

    @NEEDS_TORCH
    def test_phases_can_be_left_out(self):
        self.write("compiles.py", COMPILES)
        names = []
        for options in ([], ["--no-phases"]):
            status, _, errors = self.run_in(self.folder, [*self.command, *OUTPUT, "-q", *options, "compiles.py"])
            self.assertEqual((status, errors), (0, b""))
            names.append({row.name for row in stackweave.open(self.path).phases() if not row.filename})
        self.assertTrue(names[0] > names[1], names)

    def test_programs_that_are_started_have_files_once_they_import_the_compiler(self):
        starts = (
            f"import subprocess\nfor child in ('without', 'with'):\n    subprocess.run([{PYTHON!r}, child + '.py'])\n"
        )
        self.write("starts.py", starts)
        self.write("without.py")
        self.write("with.py", "import torch._dynamo, os, sys\nprint(os.getpid(), file=sys.stderr)")
        self.write("torch/__init__.py")
        self.write("torch/_dynamo/__init__.py")
        message = self.messages(*OUTPUT, "--subprocesses", "starts.py")
        pid = re.search(r"(?m)^\d+$", message)[0]
        self.assertEqual(sorted(name for name in self.files() if name.endswith(".swv")), [f"out.{pid}.swv", "out.swv"])
        self.assertRegex(message, r"(?m)^stackweave: nothing was compiled in this process, so out\.swv is empty: ")
        self.assertRegex(message, r"(?m)^stackweave: 1 other process has its own: \S+ -m stackweave phases out\.swv ")

    @NEEDS_TORCH
    def test_compilations_of_started_programs_are_recorded(self):
        self.write("compiles.py", COMPILES)
        self.write("starts.py", f"import subprocess\nsubprocess.run([{PYTHON!r}, 'compiles.py'], stdout=2)\n")
        message = self.messages(*OUTPUT, "--subprocesses", "starts.py")
        (path,) = (name for name in self.files() if re.fullmatch(r"out\.\d+\.swv", name))
        opened = stackweave.open(os.path.join(self.folder, path))
        self.assertEqual([row.name for row in stackweave.torch.dynamo.compiles(opened)], ["f", "f"], message)

    def test_it_can_be_silent(self):
        self.assertEqual(self.messages("-q", "-c", "1"), "")
        self.assertRegex(self.files()[0], r"\Acode\.\d+\.swv\Z")

    def test_files_are_replaced_only_with_overwrite(self):
        self.messages("-q", "-o", "out.swv", "-c", "1")
        before = os.stat(self.path)
        message = self.messages("-o", "out.swv", "-c", "raise SystemExit(5)", status=2)
        self.assertEqual(
            message, "stackweave dynamo: out.swv already exists: name another file with -o, or use --overwrite\n"
        )
        self.assertEqual(os.stat(self.path).st_mtime_ns, before.st_mtime_ns)
        self.messages("-q", "-o", "out.swv", "--overwrite", "-c", "1")

    def test_an_error_is_one_sentence(self):
        self.write("x.py")
        for arguments, text in [
            ([], "no program was given"),
            (["--paint", "x.py"], "unrecognized arguments: --paint"),
            (["--ring", "1MB", "x.py"], "unrecognized arguments: --ring"),
            (["--flush-every", "soon", "x.py"], "--flush-every: 'soon' is not a number of seconds"),
            (["--flush-every", "-1", "x.py"], "--flush-every must be"),
            (["--buffer", "much", "x.py"], "--buffer must be"),
            (["gone.py"], re.escape(f"can't open file '{os.path.realpath(self.folder)}/gone.py'")),
            (["-o", "no/folder/out.swv", "x.py"], "no/folder/out.swv"),
        ]:
            with self.subTest(arguments=arguments):
                message = self.messages(*arguments, status=2)
                self.assertRegex(message, rf"\Astackweave dynamo: .*{text}.*\n\Z")
        self.assertEqual(self.files(), [])

    def test_help_has_examples(self):
        status, output, errors = self.run_in(self.folder, [*self.command, "--help"])
        self.assertEqual((status, errors), (0, b""))
        for word in (b"Examples:", b"--no-phases", b"stackweave phases FILE"):
            self.assertIn(word, output)
        self.assertNotIn(b"--ring", output)
        self.assertIn(b"dynamo", self.run_in(self.folder, [PYTHON, "-m", "stackweave", "--help"])[1])

    def test_every_option_is_accepted(self):
        self.write("x.py", "import sys\nprint(sys.argv, file=sys.stderr)")
        options = ["--no-phases", "--report", "--buffer", "1MB", "--when-full", "drop", "--flush-every", "1"]
        options += ["--no-follow-forks", "--subprocesses", "--overwrite", "-q", "-o", "out.swv"]
        self.assertEqual(self.messages(*options, "x.py", "-q", "--report"), "['x.py', '-q', '--report']\n")
        self.assertEqual(self.files(), ["out.swv"])


class Clock:
    """A clock that only sleep() advances."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += round(seconds * 1e9)


class FailingRecorder(ProgramDynamoRecorder):
    def hook_errors(self):
        return ["_compile: KeyError", "run: TypeError", "log_event_end: ValueError", "inline_call: OSError"]


class Lines(DynamoCommandCase):
    """Tests the lines at the end, with simulated compilations."""

    def setUp(self):
        super().setUp()
        self.clock = Clock()

    def compile(self, profile, seconds, failed=False, **attributes):
        run = profile.run("compile f", "model.py", 3, compile_id="0/0", function="f")
        run.__enter__()
        self.clock.sleep(seconds)
        run.end(failed=failed, **attributes)

    def lines(self, profile):
        summary = profile.stop()
        return list(lines(Ended("stackweave", profile, summary, 10.0, self.folder)))

    def test_the_time_of_a_nested_compilation_is_not_added(self):
        profile = ProgramDynamoRecorder(self.path, clock=self.clock)
        with profile.run("compile g", "model.py", 9, compile_id="1/0", function="g"):
            self.clock.sleep(1)
            self.compile(profile, 0.5, recompile_reason="0/0: another size")
        self.compile(profile, 1, failed=True)
        (line,) = self.lines(profile)
        self.assertRegex(
            line,
            r"\A3 compilations took 2\.50 s of 10\.00 s \(1 of them recompiled, 1 failed\), recorded in out\.swv "
            r"\([\d.]+ (KiB|B)\)\. Next: stackweave phases out\.swv, or stackweave report out\.swv\Z",
        )

    def test_one_compilation_needs_no_more_words(self):
        profile = ProgramDynamoRecorder(self.path, clock=self.clock)
        self.compile(profile, 0.02)
        (line,) = self.lines(profile)
        self.assertRegex(line, r"\A1 compilation took 20 ms of 10\.00 s, recorded in ")

    def test_our_own_errors_are_reported(self):
        profile = FailingRecorder(self.path, clock=self.clock)
        self.compile(profile, 1)
        profile.pop()
        reported = self.lines(profile)
        self.assertEqual(
            reported[1],
            "parts of compilations may be missing, hooks failed: "
            "_compile: KeyError; run: TypeError; log_event_end: ValueError, and 1 more",
        )
        self.assertIn("1 pop without a push", reported[2])
        self.assertEqual(len(reported), 3)
