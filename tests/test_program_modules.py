"""A program that a command runs imports the same modules as in a plain run, and no others."""

import os
import sys
import unittest

import stackweave
from tests.command_support import CommandCase
from tests.support import PYTHON

COMMANDS = ("trace", "memory", "record", "dynamo")
HAS_LAZY_IMPORTS = hasattr(sys, "set_lazy_imports")
#: Modules that no program can replace, and those that are loaded in every program.
FIXED = "import sys; print(*sys.builtin_module_names, *(name.partition('.')[0] for name in sys.modules))"
WORK = """
def work(number):
    return [number] * 10
for number in range(100): work(number)
"""
#: Statements by which a program makes a module impossible to import.
PATHLESS = {
    "no_path": "import sys; sys.path.clear(); sys.path_importer_cache.clear()",
    "no_finders": "import sys; sys.meta_path.clear()",
    "no_import": "import builtins\ndef refuse(name, *_): raise ImportError(name)\nbuiltins.__import__ = refuse",
    "no_modules": "import sys\nfor name in set(sys.modules) - set(sys.argv[1:]): del sys.modules[name]",
    "no_folder": "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
}
#: A program that replaces these modules fails even in a plain run.
UNLIKE = {"threading"}
IMPORTS = """
import sys
for name in {}:
    try:
        __import__(name)
    except ImportError as error:
        sys.stderr.write(f"{{error}}\\n")
"""
CHROOT = """
import os, sys
sys.stdout.flush()
os.mkdir("root")
os.chroot("root")
"""


class ModulesCase(CommandCase):
    maxDiff = None

    def run_in(self, folder, command, text="", **environment):
        # A filter for warnings makes the interpreter import more modules.
        return super().run_in(folder, command, text, **{"PYTHONWARNINGS": "", **environment})

    def errors_of(self, command, script, *options, **environment):
        """Returns what a program in a separate folder prints to standard error. Asserts that it succeeds."""
        folder = os.path.join(self.folder, "elsewhere")
        os.makedirs(folder, exist_ok=True)
        arguments = [PYTHON, "-m", "stackweave", command, *options, "-o", os.path.join(self.folder, f"{command}.swv")]
        status, output, errors = self.run_in(folder, [*arguments, "--overwrite", script], **environment)
        self.assertEqual((status, output), (0, b""), errors)
        return errors.decode()

    def assert_as_plain(self, command, script, *options):
        """Asserts that it ends as in a plain run, except for the lines of the command at the end."""
        status, output, plain = self.run_in(self.folder, [PYTHON, script])
        self.assertEqual((status, output), (0, b""), plain)
        lines = self.errors_of(command, script, *options).splitlines()
        self.assertEqual([line for line in lines if not line.startswith("stackweave: ")], plain.decode().splitlines())

    def shadow_all(self):
        """Writes a module to the program's folder for each standard module that a program can replace."""
        fixed = set(self.run_in(self.folder, [PYTHON, "-c", FIXED])[1].decode().split())
        names = sorted(set(sys.stdlib_module_names) - fixed)
        self.assertLess({"argparse", "glob"}, set(names))  # .pth files load some.
        for name in names:
            self.write(f"program/{name}.py", "import sys\nsys.stderr.write(f'{__name__} of the program\\n')\n")
        return names


class OwnModules(ModulesCase):
    def test_nothing_of_the_programs_is_imported(self):
        self.shadow_all()
        script = self.write("program/script.py", WORK)
        for command in COMMANDS:
            with self.subTest(command=command):
                for line in self.errors_of(command, script).splitlines():
                    self.assertTrue(line.startswith("stackweave: "), line)

    def test_the_program_imports_its_own(self):
        names = [name for name in self.shadow_all() if name not in UNLIKE]
        script = self.write("program/script.py", IMPORTS.format(names) + WORK)
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assert_as_plain(command, script)

    def test_those_of_programs_that_it_starts(self):
        self.shadow_all()
        child = self.write("program/child.py", "import glob, json, random\n" + WORK)
        script = self.write("script.py", f"import subprocess\nsubprocess.run([{PYTHON!r}, {child!r}], check=True)")
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assert_as_plain(command, script, "--subprocesses")

    def test_the_modules_that_are_loaded(self):
        """They are those of a plain run, built-in ones, our own, and two that the recorders use as well."""
        show = "import sys; sys.stderr.write(' '.join(sys.modules))"
        script = self.write("program/script.py", show)
        plain = self.run_in(self.folder, [PYTHON, script])[2].decode().split()
        known = {*plain, *sys.builtin_module_names, "threading"}
        for command in COMMANDS:
            with self.subTest(command=command):
                found = self.errors_of(command, script, "-q").split()
                more = [name for name in found if name not in known and name.partition(".")[0] != "stackweave"]
                self.assertEqual(more, [])


class NoImports(ModulesCase):
    """All lines are printed at the end, even if nothing can be imported any more."""

    def assert_whole(self, command, errors):
        expected = {"trace": "100 calls", "memory": "peak ", "record": "100 calls", "dynamo": "nothing was compiled"}
        lines = errors.splitlines()
        self.assertTrue(all(line.startswith("stackweave: ") for line in lines), errors)
        self.assertIn(expected[command].split()[-1], lines[0])
        stackweave.open(os.path.join(self.folder, f"{command}.swv")).info()

    def test_after_the_program_has_made_imports_impossible(self):
        for name, code in PATHLESS.items():
            script = self.write(f"program/{name}.py", WORK + code)
            for command in COMMANDS:
                with self.subTest(command=command, program=name):
                    self.assert_whole(command, self.errors_of(command, script))

    def test_in_forked_children(self):
        code = WORK + "import os, sys\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\nelse:\n    "
        code += "sys.path.clear(); sys.meta_path.clear(); sys.path_importer_cache.clear()"
        script = self.write("program/forks.py", code)
        for command in COMMANDS:
            with self.subTest(command=command):
                errors = self.errors_of(command, script, PYTHONWARNINGS="ignore::DeprecationWarning")
                self.assert_whole(command, errors)

    @unittest.skipUnless(os.geteuid() == 0, "only root may change the root folder")
    def test_after_a_change_of_the_root_folder(self):
        script = self.write("program/jailed.py", WORK + CHROOT)
        for command in COMMANDS:
            with self.subTest(command=command):
                lines = self.errors_of(command, script).splitlines()
                os.rmdir(os.path.join(self.folder, "elsewhere", "root"))
                self.assertTrue(all(line.startswith("stackweave: ") for line in lines), lines)
                self.assertRegex(lines[-1], "recorded in|nothing was compiled")
                stackweave.open(os.path.join(self.folder, f"{command}.swv")).info()


class LazyCase(ModulesCase):
    """Tests with lazy imports: each import waits until the module is used."""

    def run_in(self, folder, command, text="", **environment):
        return super().run_in(folder, command, text, **{"PYTHON_LAZY_IMPORTS": "all", **environment})


@unittest.skipUnless(HAS_LAZY_IMPORTS, "imports can be lazy from 3.15 on")
class OwnModulesLazily(LazyCase, OwnModules):
    def test_imports_of_the_program_are_lazy(self):
        code = "import glob, sys\nloaded = 'glob' in sys.modules\nglob.glob('*')\n"
        code += "state = (sys.get_lazy_imports(), sys.get_lazy_imports_filter(), loaded, 'glob' in sys.modules)\n"
        script = self.write("program/script.py", code + "sys.stderr.write(f'{state}\\n')\n")
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertIn("('all', None, False, True)", self.errors_of(command, script).splitlines())


@unittest.skipUnless(HAS_LAZY_IMPORTS, "imports can be lazy from 3.15 on")
class NoImportsLazily(LazyCase, NoImports):
    pass
