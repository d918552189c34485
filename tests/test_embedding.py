"""A program that finalizes its Python and initializes it again goes on, without the package."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
import unittest

import stackweave
from tests.support import ROOT

SOURCE = os.path.join(ROOT, "tests", "native", "embedding.c")
LIBRARY = os.path.join(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("LDLIBRARY") or "")
HEADER = os.path.join(sysconfig.get_path("include"), "Python.h")

#: Creates and frees code objects, and many small objects.
WORK = """
def descend(depth):
    return descend(depth - 1) if depth else [str(number) for number in range(100)]

for number in range(200):
    exec(compile(f"def made{number}(): return {number}\\nmade{number}()", "made", "exec"))
    descend(20)
"""

PROGRAM = """
import sys
try:
    import stackweave
except ImportError as error:
    print(error)
else:
    print("imported")
    USE
WORK
sys.stdout.flush()
"""

REFUSAL = "stackweave can't be imported again after Py_Finalize: it belongs to the interpreter that was finalized"


@unittest.skipUnless(shutil.which("cc") and os.path.exists(HEADER), "there is no C compiler, or no header of Python's")
@unittest.skipUnless(LIBRARY.endswith(".so") and os.path.exists(LIBRARY), "Python is no shared library")
class Lives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.program = folder.name, os.path.join(folder.name, "embedding")
        include, libraries = sysconfig.get_path("include"), os.path.dirname(LIBRARY)
        flags = [f"-I{include}", LIBRARY, f"-Wl,-rpath,{libraries}"]
        subprocess.run(["cc", "-o", cls.program, SOURCE, *flags], check=True)

    def run_lives(self, use, lives=3):
        """Returns the output of a program that creates this many interpreters, one after the other."""
        code = PROGRAM.replace("USE", use).replace("WORK", WORK)
        package = os.path.dirname(os.path.dirname(stackweave.__file__))
        home = sysconfig.get_config_var("prefix")
        environment = {**os.environ, "PYTHONHOME": home, "PYTHONPATH": package}
        done = subprocess.run(
            [self.program, code, str(lives)],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=environment,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.splitlines()

    def test_the_second_import_is_refused_and_the_program_goes_on(self):
        self.assertEqual(self.run_lives("stackweave.capture()"), ["imported", REFUSAL, REFUSAL])

    def test_so_it_is_after_recordings(self):
        use = "stackweave.trace('calls.swv', overwrite=True).start().stop()"
        use += "; stackweave.memory('heap.swv', python_allocators=True, overwrite=True).start().stop()"
        self.assertEqual(self.run_lives(use), ["imported", REFUSAL, REFUSAL])

    def test_so_it_is_where_recordings_end_with_the_interpreter(self):
        use = "stackweave.trace('open-calls.swv', overwrite=True).start()"
        use += "; stackweave.memory('open-heap.swv', python_allocators=True, overwrite=True).start()"
        self.assertEqual(self.run_lives(use), ["imported", REFUSAL, REFUSAL])
        for name in ("open-calls.swv", "open-heap.swv"):
            self.assertEqual(stackweave.open(os.path.join(self.folder, name)).info()["missing"], [], name)

    def test_the_module_can_be_imported_again_in_the_same_life(self):
        use = "[sys.modules.pop(name) for name in list(sys.modules) if name.startswith('stackweave')]"
        use += "; import stackweave; print(len(stackweave.capture().frames) > 1)"
        self.assertEqual(self.run_lives(use, lives=1), ["imported", "True"])
