"""stackweave doctor reports that all is well, or what is not."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import stackweave
from stackweave._doctor import capture as doctor_capture
from stackweave._doctor import debug_files as doctor_debug_files
from stackweave._doctor import elf as doctor_elf
from stackweave._doctor import modules as doctor_modules
from stackweave._doctor import neighbours as doctor_neighbours
from stackweave._doctor import recorders as doctor_recorders
from stackweave._doctor import system as doctor_system
from stackweave._doctor import text as doctor_text
from stackweave._doctor.findings import Section, examine, note, ok, problem
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

COMPILER = shutil.which("gcc") or shutil.which("cc")


def doctor(*arguments, before="", **environment):
    """Runs the command, after `before` in the same process."""
    code = (
        f"{before}\nimport sys\nfrom stackweave._doctor.command import main\nsys.exit(main('stackweave', sys.argv[1:]))"
    )
    hidden = ("NO_COLOR", "CLICOLOR_FORCE", "DEBUGINFOD_URLS", "PYTHONMALLOC")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [PYTHON, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**kept, **environment},
        timeout=120,
    )


def findings_of(*arguments, **options):
    done = doctor("--json", *arguments, **options)
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)["findings"]


def whats(findings, state=None):
    """Returns all sentences."""
    return "\n".join(finding["what"] for finding in findings if state in (None, finding["state"]))


class GoodPlaces(unittest.TestCase):
    def test_everything_is_said_in_lines_that_fit(self):
        done = doctor(COLUMNS="80")
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], rf"^Stackweave {stackweave.__version__} with CPython \d")
        titles = [line for line in lines if line and not line.startswith(" ")][1:-1]
        self.assertEqual(titles, ["Capture", "Recorders", "Native modules", "System", "Other tools"])
        words = {line[2:10].strip() for line in lines if line.startswith("  ")} - {""}
        self.assertLessEqual(words, {"ok", "note", "problem"})
        self.assertTrue(lines[-1].endswith("."))
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("could not be checked", done.stdout)
        long = [line for line in lines if len(line) > 80]
        self.assertTrue(all(len(line.split()[-1]) > 40 for line in long), long)

    @unittest.skipUnless(stackweave.stats()["python"]["reader"] == "direct", "frames are read by the public API")
    def test_the_command_ends_with_0_and_has_the_figures_for_programs(self):
        command = [PYTHON, "-m", "stackweave", "doctor", "--json", "--import", "this"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
        self.assertIn("Beautiful is better than ugly", done.stderr, "what an import prints is no part of it")
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["full_speed"]), (0, True), whats(found["findings"], "problem"))
        values = {}
        for finding in found["findings"]:
            values.update(finding["values"])
        self.assertGreater(values["capture_seconds"], 0)
        self.assertGreater(values["extract_stack_seconds"], 0)
        self.assertIn("call_seconds", values)
        self.assertIn(values["mechanism"], {doctor_recorders.BEST, "profile"})
        self.assertEqual((values["reader"], values["misses"], values["resets"]), ("direct", 0, 0))
        self.assertGreater(values["slots"], 0)
        self.assertGreater(values["free_bytes"], 0)

    def test_colours_are_used_on_terminals_and_if_requested(self):
        def wants(**environment):
            with mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(sys, "stdout") as stdout:
                stdout.isatty.return_value = environment.get("TERM") == "xterm"
                return doctor_text.wants_colour()

        self.assertEqual((wants(), wants(TERM="xterm"), wants(TERM="xterm", NO_COLOR="1")), (False, True, False))
        self.assertEqual((wants(CLICOLOR_FORCE="1"), wants(CLICOLOR_FORCE="1", NO_COLOR="1")), (True, False))
        section = Section("Title", [problem("bad", "do good")])
        lines = list(doctor_text.lines("head", [section], "end", colour=True))
        self.assertEqual(
            lines[2:5], ["\x1b[1mTitle\x1b[0m", "  \x1b[1;31mproblem\x1b[0m  bad", "           -> do good"]
        )

    def test_an_interrupt_ends_it_without_a_traceback(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "stopper.py"), "w") as file:
                file.write("raise KeyboardInterrupt")
            search = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), folder]))
            done = subprocess.run(
                [PYTHON, "-m", "stackweave", "doctor", "--import", "stopper"],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": search},
                timeout=120,
            )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (-signal.SIGINT, "", ""))

    def test_a_closed_pipe_causes_no_traceback(self):
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w") as pipe:
            command = [PYTHON, "-m", "stackweave", "doctor"]
            done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_wrong_arguments_end_with_2_and_a_sentence(self):
        done = doctor("--jsn")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(
            done.stderr, "stackweave doctor: unrecognized arguments: --jsn; see stackweave doctor --help\n"
        )
        self.assertIn("Exit status:", doctor("--help").stdout)


class BadPlaces(unittest.TestCase):
    def test_all_that_is_wrong_is_named(self):
        before = "import sys\ndef watch(*_): pass\nsys.setprofile(watch)\n"
        if sys.version_info >= (3, 12):
            before += "sys.monitoring.use_tool_id(3, 'a tool')\n"
        arguments = ("--import", "json, no_such_module", "-m", "colorsys")
        found = findings_of(*arguments, before=before, PYTHONMALLOC="malloc", STACKWEAVE_ANSWERS="0")
        notes = whats(found, "note")
        self.assertIn("sys.setprofile is in use, by watch", notes)
        self.assertIn("PYTHONMALLOC=malloc: each Python object is a block of malloc", notes)
        self.assertIn("would not answer stackweave stacks: STACKWEAVE_ANSWERS=0 is set", notes)
        if sys.version_info >= (3, 12):
            self.assertIn("sys.monitoring is in use by a tool (3)", notes)
        self.assertEqual(
            [finding["what"] for finding in found if finding["section"] == "Imports"],
            ["no_such_module can't be imported: ModuleNotFoundError: No module named 'no_such_module'"],
        )

    def test_each_allocator_of_the_environment_has_its_words(self):
        def findings(value):
            with mock.patch.dict(os.environ, {"PYTHONMALLOC": value}):
                return [finding.what for finding in doctor_neighbours._python_malloc()]

        self.assertEqual(findings("pymalloc") + findings("default"), [])
        self.assertIn("every block is checked", findings("debug")[0])
        self.assertIn("block of malloc", findings("malloc_debug")[0])

    def test_frames_that_are_not_read_directly_are_a_problem(self):
        """A free-threaded build has such frames."""
        python = {"reader": "public API", "fallback_reason": "this build has no GIL", "death_watch": "pinning"}
        with mock.patch.object(doctor_capture, "stats", return_value={"python": python}):
            (finding,) = doctor_capture._reader()
        self.assertEqual(finding.state, "problem")
        self.assertIn("by the public API: this build has no GIL", finding.what)
        before = "import stackweave._doctor.capture as d\nd._reader = lambda: iter([d.problem('x')])"
        done = doctor(before=before)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Captures or recorders do not work at full speed: 1 problem", done.stdout)

    def test_a_free_threaded_or_debug_build_is_named(self):
        with mock.patch.object(doctor_neighbours.sysconfig, "get_config_var", return_value=1):
            self.assertIn("free-threaded", next(doctor_neighbours._interpreter()).what)

    def test_a_check_that_fails_hinders_no_other(self):
        def broken_check():
            yield ok("before")
            raise RuntimeError("no reason")

        found = examine("Title", (broken_check, lambda: [note("after")]))
        sentences = [finding.what for finding in found.findings]
        self.assertEqual(sentences, ["before", "broken check could not be checked: RuntimeError: no reason", "after"])

    def test_everything_is_said_in_a_process_where_nothing_can_be_read(self):
        before = """
import builtins
real = builtins.open
def refuse(path, *arguments, **options):
    if str(path).startswith(("/proc", "/etc", "/usr/lib/os-release")):
        raise PermissionError(13, "Permission denied", str(path))
    return real(path, *arguments, **options)
builtins.open = refuse
"""
        done = doctor(before=before)
        self.assertEqual(done.stderr, "")
        self.assertIn("could not be checked: PermissionError", done.stdout)
        self.assertIn("a capture at depth 20 takes", done.stdout)


class System(unittest.TestCase):
    def tracing(self, scope, is_able):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f"{scope}\n")
            file.flush()
            with (
                mock.patch.object(doctor_system, "YAMA", file.name),
                mock.patch.object(doctor_system, "_has_capability", return_value=is_able),
            ):
                (finding,) = doctor_system._tracing()
        return finding

    def test_what_yama_allows(self):
        states = {(scope, able): self.tracing(scope, able).state for scope in range(4) for able in (False, True)}
        good = {(0, False), (0, True), (1, True), (2, True)}
        self.assertEqual({key for key, state in states.items() if state == "ok"}, good)
        self.assertIn("kernel.yama.ptrace_scope=0", self.tracing(1, False).remedy)
        self.assertNotIn("sudo", self.tracing(3, False).remedy)

    def test_a_folder_that_is_full_or_closed(self):
        usage = shutil.disk_usage("/")._replace(free=1 << 20)
        with mock.patch.object(doctor_system.shutil, "disk_usage", return_value=usage):
            (finding,) = doctor_system._room()
        self.assertEqual((finding.state, finding.what[:9]), ("note", "only 1.00"))
        with mock.patch.object(doctor_system.os, "access", return_value=False):
            (finding,) = doctor_system._room()
        self.assertIn("can't be written", finding.what)

    def test_a_browser_is_found_as_the_report_finds_it(self):
        def browser(**environment):
            with mock.patch.dict(os.environ, environment, clear=True):
                (finding,) = doctor_system._browser()
            return finding

        self.assertEqual(browser(PATH=os.environ["PATH"]).state, "note")
        self.assertEqual(browser(PATH=os.environ["PATH"], BROWSER="no-such-browser:sh %s").values["browser"], "sh")


class Remedies(unittest.TestCase):
    def remedy(self, *identity, packages=("glibc", "zlib")):
        with (
            mock.patch.object(doctor_debug_files, "_distribution", return_value=list(identity)),
            mock.patch.object(doctor_debug_files, "_packages_of", return_value=list(packages)),
        ):
            (remedy,) = doctor_debug_files.remedies(["/usr/lib/libz.so.1"])
        return remedy.how

    def test_each_distribution_has_its_own(self):
        self.assertIn("sudo dnf debuginfo-install glibc zlib", self.remedy("fedora"))
        self.assertIn(
            "DEBUGINFOD_URLS=https://debuginfod.elfutils.org   or   find-dbgsym", self.remedy("ubuntu", "debian")
        )
        self.assertIn("find-dbgsym-packages /usr/lib/libz.so.1", self.remedy("debian"))
        packages = ["libc6", "libpython3.11-stdlib", "python3.11-minimal", "zlib1g"]
        self.assertTrue(self.remedy("debian", packages=packages).endswith("sudo apt install libc6-dbg python3.11-dbg"))
        self.assertEqual(self.remedy("nixos"), "export DEBUGINFOD_URLS=https://debuginfod.elfutils.org")

    def test_wheels_and_built_pythons_have_others(self):
        paths = ["/x/site-packages/numpy.libs/a.so", "/x/site-packages/numpy/b.so", "/x/site-packages/_c.abi3.so"]
        (remedy,) = doctor_debug_files.remedies(paths)
        self.assertEqual(remedy.what, "wheels have no debug information: _c, numpy")
        with mock.patch.object(doctor_debug_files.sys, "base_prefix", "/home/me/.pyenv/versions/3.12.1"):
            (remedy,) = doctor_debug_files.remedies(["/home/me/.pyenv/versions/3.12.1/bin/python3.12"])
        self.assertTrue(remedy.how.startswith("PYTHON_CFLAGS=-g pyenv install --force 3."))


@unittest.skipUnless(COMPILER and shutil.which("strip"), "there is no compiler")
class Modules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def build(self, name, *options):
        source, library = os.path.join(self.folder, f"{name}.c"), os.path.join(self.folder, f"{name}.so")
        with open(source, "w") as file:
            file.write("static int inside(int x) { return x + 1; }\nint (*outside(void))(int) { return inside; }\n")
        command = [COMPILER, "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id", *options, "-o", library, source]
        subprocess.run(command, check=True, capture_output=True)
        return library

    def test_a_file_says_what_it_has(self):
        library = self.build("whole", "-g")
        elf = doctor_elf.read(library)
        has = (elf.has_unwind_tables, elf.has_debug_information, elf.has_symbols, elf.has_exported_symbols)
        self.assertEqual(has, (True, True, True, True))
        self.assertRegex(elf.build_id, "^[0-9a-f]{40}$")
        subprocess.run(["strip", "--strip-debug", library], check=True)
        elf = doctor_elf.read(library)
        self.assertEqual((elf.has_debug_information, elf.has_symbols), (False, True))
        subprocess.run(["strip", library], check=True)
        elf = doctor_elf.read(library)
        self.assertEqual((elf.has_symbols, elf.has_exported_symbols), (False, True))
        bare = doctor_elf.read(self.build("bare", "-fno-asynchronous-unwind-tables"))
        self.assertFalse(bare.has_unwind_tables)
        for text in (b"", b"#!/bin/sh\n", b"\x7fELF\x02short"):
            path = os.path.join(self.folder, "no elf")
            with open(path, "wb") as file:
                file.write(text)
            with self.assertRaises(ValueError):
                doctor_elf.read(path)

    def test_debug_information_beside_the_module_counts(self):
        library = self.build("linked", "-g")
        subprocess.run(["objcopy", "--only-keep-debug", library, f"{library}.debug"], check=True)
        subprocess.run(["strip", library], check=True)
        self.assertFalse(doctor_modules.has_lines(doctor_modules.Module(library, doctor_elf.read(library))))
        subprocess.run(["objcopy", f"--add-gnu-debuglink={library}.debug", library], check=True)
        self.assertTrue(doctor_modules.has_lines(doctor_modules.Module(library, doctor_elf.read(library))))
        self.assertTrue(doctor_elf.read(f"{library}.debug").has_debug_information)

    def test_modules_of_the_process_that_lack_something_are_named(self):
        bare = self.build("bare", "-fno-asynchronous-unwind-tables")
        subprocess.run(["strip", bare], check=True)
        found = findings_of(before=f"import ctypes\nctypes.CDLL({bare!r})")
        self.assertRegex(whats(found, "note"), r"\bbare\.so has no unwind tables")
        (finding,) = [finding for finding in found if finding["what"].startswith("no debug information, only")]
        self.assertIn(bare, [module["path"] for module in finding["values"]["modules"]])


if __name__ == "__main__":
    unittest.main()
