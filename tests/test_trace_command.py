"""stackweave trace: the program runs as without it, and the command prints how to read the recording."""

import os
import re
import subprocess
import sys
import zipfile

import stackweave
from tests import programs
from tests.command_support import OUTPUT, CommandCase, SamenessCase
from tests.support import PYTHON, on_oldest_and_newest

TRACE = [PYTHON, "-m", "stackweave", "trace"]


class TraceCommandCase(CommandCase):
    name = "trace"


@on_oldest_and_newest
class Sameness(SamenessCase):
    name = "trace"

    def test_scripts(self):
        self.run_scripts()

    def test_code(self):
        self.run_code()

    def test_modules_folders_and_archives(self):
        self.write("pack/__init__.py", "print('init', __name__)")
        self.write("pack/__main__.py", programs.SURROUNDINGS)
        self.write("pack/sub.py", programs.SURROUNDINGS + "\nimport pack\n1 / 0")
        self.write("bare/__init__.py")
        self.write("folder/__main__.py", programs.SURROUNDINGS + "\nimport inside\n1 / 0")
        self.write("folder/inside.py")
        with zipfile.ZipFile(os.path.join(self.folder, "archive.pyz"), "w") as archive:
            archive.writestr("__main__.py", programs.SURROUNDINGS + "\nraise SystemExit(3)")
        with zipfile.ZipFile(os.path.join(self.folder, "empty.zip"), "w") as archive:
            archive.writestr("other.py", "")
        self.assert_all_same(
            [
                ("package", ["-m", "pack", "x"]),
                ("submodule", ["-m", "pack.sub", "-x"]),
                ("joined", ["-mpack.sub", "-x"]),
                ("no_module", ["-m", "gone"]),
                ("no_main", ["-m", "bare"]),
                ("standard", ["-m", "json.tool", "--help"]),
                ("a_folder", ["folder", "x"]),
                ("a_folder_from_here", ["./folder/", "x"]),
                ("an_archive", ["archive.pyz", "x"]),
                ("no_main_in_archive", ["empty.zip"]),
                ("no_main_in_folder", ["bare"]),
            ]
        )

    def test_paths_and_flags(self):
        self.write("deep/er/script.py", programs.SURROUNDINGS)
        os.symlink("deep/er/script.py", os.path.join(self.folder, "link.py"))
        self.write("compiled.py", programs.SURROUNDINGS)
        compile_it = "import py_compile; py_compile.compile('compiled.py', 'compiled.pyc', doraise=True)"
        subprocess.run([PYTHON, "-c", compile_it], cwd=self.folder, check=True)
        cases = [
            ("from_here", ["./deep/er/script.py"]),
            ("by_way_of", ["deep/../deep/er/script.py"]),
            ("absolute", [os.path.join(self.folder, "deep/er/script.py")]),
            ("linked", ["link.py"]),
            ("compiled", ["compiled.pyc"]),
            ("optimized", ["link.py"], ["-O"]),
            ("strict", ["link.py"], ["-W", "error", "-X", "dev"]),
            ("unbuffered", ["link.py"], ["-u", "-B", "-X", "utf8"]),
        ]
        if sys.version_info >= (3, 11):
            cases += [("safe", ["link.py"], ["-P"]), ("safe_module", ["-m", "json.tool", "-h"], ["-P"])]
        self.assert_all_same(cases)

    def test_programs_from_the_standard_input(self):
        self.run_standard_input()


class Said(TraceCommandCase):
    def test_the_last_line_says_where_it_is_and_what_to_do(self):
        self.write("work.py", "def f(): pass\nfor n in range(1000): f()")
        message = self.messages("work.py")
        self.assertRegex(
            message,
            r"\Astackweave: 1,0\d\d calls in [\d.]+ m?s, recorded in (work\.\d+\.swv) \([\d.]+ (KiB|B)\)\. "
            r"Next: ([\w.]+ -m stackweave) top \1, or \3 report \1\n\Z",
        )
        command = message.split("Next: ")[1].split(",")[0].split()
        done = self.run_in(self.folder, [PYTHON, *command[1:]])
        self.assertEqual(done[0], 0, done[2])
        self.assertRegex(done[1].decode(), r"(?m)^ *1,000 .* f  .*work\.py:1$")

    def test_calls_of_c_functions_are_counted(self):
        self.write(
            "work.py", "import json\nfor n in range(1000): len('a')\ntry: json.loads('{')\nexcept ValueError: pass"
        )
        message = self.messages(*OUTPUT, "--c-calls", "--no-gc", "work.py")
        found = re.match(r"stackweave: [\d,]+ calls and ([\d,]+) calls of C functions in ", message)
        self.assertTrue(found, message)
        recorded = [event for event in stackweave.open(self.path).events() if event.kind == "c-call"]
        self.assertEqual(int(found[1].replace(",", "")), len(recorded))
        self.assertGreaterEqual(len(recorded), 1000)

    def test_nothing_is_in_the_trace_but_the_program(self):
        self.write("work.py", "def f(): pass\nf()")
        self.messages(*OUTPUT, "-q", "--no-gc", "work.py")
        functions = {(row.name, os.path.basename(row.filename)) for row in stackweave.open(self.path).top(all=True)}
        interpreters = {
            row for row in functions if row[1] in ("threading.py", "<frozen importlib._bootstrap_external>")
        }
        self.assertEqual(functions - interpreters, {("<module>", "work.py"), ("f", "work.py")})

    def test_it_can_be_silent(self):
        self.assertEqual(self.messages("-q", "-c", "1"), "")
        self.assertRegex(self.files()[0], r"\Acode\.\d+\.swv\Z")

    def test_a_ring_can_be_written_only_at_an_exception(self):
        ring = [*OUTPUT, "--ring", "1MB", "--dump-on", "exception"]
        self.assertIn("nothing was written to out.swv: a ring is written", self.messages(*ring, "-c", "1"))
        self.assertEqual(self.files(), [])
        self.assertIn("recorded in out.swv", self.messages(*ring, "-c", "1 / 0", status=1))

    def test_names_come_from_the_program(self):
        self.write("folder/__main__.py")
        for arguments, name in [
            (["-m", "this"], "this"),
            (["folder"], "folder"),
        ]:
            self.run_in(self.folder, [*TRACE, "-q", *arguments])
            self.assertRegex(" ".join(self.files()), rf"(^| ){re.escape(name)}\.\d+\.swv( |$)")

    def test_files_are_replaced_only_with_overwrite(self):
        self.messages("-q", "-o", "out.swv", "-c", "1")
        size = os.path.getsize(self.path)
        message = self.messages("-o", "out.swv", "-c", "raise SystemExit(5)", status=2)
        self.assertEqual(
            message, "stackweave trace: out.swv already exists: name another file with -o, or use --overwrite\n"
        )
        self.assertEqual(os.path.getsize(self.path), size)
        self.messages("-q", "-o", "out.swv", "--overwrite", "-c", "1")

    def test_errors_are_reported_in_one_sentence(self):
        self.write("x.py")
        for arguments, text in [
            ([], "no program was given"),
            (["-m"], "-m needs the name of a module"),
            (["-c"], "-c needs code"),
            (["--paint", "x.py"], "unrecognized arguments: --paint"),
            (["--max-depth", "deep", "x.py"], "--max-depth: 'deep' is not a whole number"),
            (["--max-depth", "0", "x.py"], "--max-depth must be greater than 0"),
            (["--min-duration", "10 parsecs", "x.py"], '--min-duration must be a time like "10us"'),
            (["--demote=many", "x.py"], "--demote"),
            (["--ring", "x", "x.py"], "--ring must be"),
            (["--mechanism", "magic", "x.py"], "invalid choice: 'magic'"),
            (["--include", "file:", "x.py"], "--include has a pattern without a text"),
            (["--logs=a,loud", "x.py"], "--logs must have a level"),
            (
                ["gone.py"],
                re.escape(f"can't open file '{os.path.realpath(self.folder)}/gone.py': [Errno 2] No such file"),
            ),
            (["-o", "no/folder/out.swv", "x.py"], "no/folder/out.swv"),
        ]:
            with self.subTest(arguments=arguments):
                message = self.messages(*arguments, status=2)
                self.assertRegex(message, rf"\Astackweave trace: .*{text}.*\n\Z")
        self.assertEqual(self.files(), [])

    def test_help_has_examples(self):
        status, output, errors = self.run_in(self.folder, [*TRACE, "--help"])
        self.assertEqual((status, errors), (0, b""))
        for word in (b"Examples:", b"--min-duration", b"stackweave top FILE"):
            self.assertIn(word, output)
        self.assertIn(b"trace", self.run_in(self.folder, [PYTHON, "-m", "stackweave", "--help"])[1])

    def test_every_option_is_accepted(self):
        self.write("x.py", "import sys\nprint(sys.argv, file=sys.stderr)")
        options = [
            "--c-calls",
            "--include",
            "x",
            "--exclude",
            "module:json",
            "--min-duration",
            "1us",
            "--max-depth",
            "9",
        ]
        options += ["--max-events", "1000", "--demote", "--demote=100,1us", "--mechanism", "auto", "--no-gc"]
        options += [
            "--no-tasks",
            "--no-torch",
            "--arguments",
            "x.f",
            "--native-stacks",
            "x.f",
            "--logs",
            "--logs=a,info",
        ]
        options += ["--buffer", "1MB", "--when-full", "drop", "--flush-every", "1"]
        options += ["--no-follow-forks", "--ring", "1MB,10", "--overwrite", "-q", "-o", "out.swv"]
        self.assertEqual(self.messages(*options, "x.py", "-q", "--ring"), "['x.py', '-q', '--ring']\n")
        self.assertTrue(stackweave.open(self.path).info()["processes"][0]["ring"])

    def test_programs_that_it_starts_may_record_as_well(self):
        from_environment = "import stackweave\nwith stackweave.trace.from_environment() as trace: (lambda: 0)()"
        for child in ("def f(): pass\nf()", from_environment):
            starter = f"import subprocess\nsubprocess.run([{PYTHON!r}, '-c', {child!r}], check=True)"
            self.messages(*OUTPUT, "-q", "--subprocesses", "-c", starter)
            self.assertEqual(len(stackweave.open(self.folder).info()["processes"]), 2)
            (other,) = [name for name in self.files() if name != "out.swv"]
            functions = {row.name for row in stackweave.open(os.path.join(self.folder, other)).top(all=True)}
            self.assertIn("<lambda>" if child == from_environment else "f", functions)
            os.remove(os.path.join(self.folder, other))

    def test_the_recordings_of_forked_processes_are_named(self):
        message = self.messages(*OUTPUT, "-c", "import os\nif os.fork(): os.wait()\nelse:\n  def f(): pass\n  f()")
        self.assertRegex(message, r"(?m)^stackweave: 1 forked process has its own: .* top out\.swv out\.\*\.swv$")
        self.assertEqual(len(self.files()), 2)

    def test_a_recording_that_can_not_be_written_fails_nothing(self):
        self.assertIn("out.swv", self.messages("-o", "/dev/full/out.swv", "-c", "1", status=2))
