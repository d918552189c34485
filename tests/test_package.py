"""Tests the imports of the package, the places where it can be used, and its stats()."""

import os
import sys
import tempfile
import unittest

import stackweave
from tests.support import run_python

SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit()
script = '''
try:
    import stackweave
except ImportError as error:
    assert "subinterpreter" in str(error), error
else:
    raise AssertionError("it was imported")
'''
interpreter = interpreters.create()
failed = interpreters.run_string(interpreter, script)
assert failed is None, failed
interpreters.destroy(interpreter)
import stackweave
assert stackweave.capture().frames
"""


class Imports(unittest.TestCase):
    def test_importing_imports_nothing_else(self):
        script = "import sys; before = set(sys.modules); import stackweave; print(*sorted(set(sys.modules) - before))"
        self.assertEqual(run_python(script).split(), ["stackweave", "stackweave._native"])

    def test_resolving_imports_nothing(self):
        script = """
import stackweave, sys
before = set(sys.modules)
captured = stackweave.capture()
captured.frames, len(captured), captured.to_json(), hash(captured), repr(captured)
stackweave.symbolize([captured]), stackweave.to_json([captured]), stackweave.stats(), stackweave.thread_stacks()
print(*set(sys.modules) - before)
"""
        self.assertEqual(run_python(script).split(), [])

    def test_everything_public_is_listed_and_documented(self):
        for name in stackweave.__all__:
            member = getattr(stackweave, name)
            if name != "__version__":
                self.assertTrue(member.__doc__, name)
                self.assertIn(member.__module__, ("stackweave", "stackweave._native"), name)

    def test_a_second_interpreter_is_refused_in_words(self):
        run_python(SUBINTERPRETER)

    def test_a_free_threaded_python_that_can_not_load_it_is_refused_in_words(self):
        # There, the suffix of modules for all versions is not one of the suffixes.
        script = """
import importlib.machinery, sys
sys.abiflags = "t"
importlib.machinery.EXTENSION_SUFFIXES[:] = [".cpython-313t-x86_64-linux-gnu.so", ".so"]
loaders = [(importlib.machinery.SourceFileLoader, [".py"])]
sys.path_hooks[1:] = [importlib.machinery.FileFinder.path_hook(*loaders)]
sys.path_importer_cache.clear()
try:
    import stackweave
except ImportError as error:
    print(error)
"""
        version = ".".join(map(str, sys.version_info[:2]))
        expected = "this build of stackweave is not for a free-threaded Python: "
        self.assertEqual(run_python(script), f"{expected}use python{version} in place of python{version}t\n")

    def test_importing_again_keeps_the_types(self):
        script = """
import pickle, stackweave, sys
captured, kept = stackweave.capture(), stackweave
for name in [name for name in sys.modules if name.startswith("stackweave")]:
    del sys.modules[name]
import stackweave
assert stackweave is not kept and stackweave.Traceback is kept.Traceback and stackweave.Frame is kept.Frame
assert stackweave.symbolize([captured]) == kept.symbolize([captured])
assert pickle.loads(pickle.dumps(captured)) == captured
"""
        run_python(script)

    def test_recorders_know_each_other_after_sys_modules_was_restored(self):
        script = """
import stackweave, sys
from unittest import mock
with mock.patch.dict(sys.modules):
    stackweave.trace
with stackweave.trace(sys.argv[1]):
    assert stackweave.record(sys.argv[1] + ".other", if_busy="skip").start().state == "skipped"
with stackweave.memory(sys.argv[1] + ".memory"):
    for name in [name for name in sys.modules if name.startswith("stackweave._") and name != "stackweave._native"]:
        del sys.modules[name]
    from stackweave._recorders.combined import CombinedRecorder
    assert CombinedRecorder is not stackweave.record
    assert CombinedRecorder(sys.argv[1] + ".copy", if_busy="skip").start().state == "skipped"
"""
        with tempfile.TemporaryDirectory() as folder:
            run_python(script, os.path.join(folder, "first.swv"))


class Statistics(unittest.TestCase):
    def test_captures_are_counted(self):
        before = stackweave.stats()
        for _ in range(10):
            stackweave.capture()
        after = stackweave.stats()
        self.assertGreaterEqual(after["captures"], before["captures"] + 10)
        self.assertGreaterEqual(after["unwind"]["stop_reasons"]["end of stack"], 10)
        self.assertGreaterEqual(after["python"]["stop_reasons"]["end of stack"], 10)

    def test_the_reader_of_python_frames_is_named(self):
        python = stackweave.stats()["python"]
        self.assertIn(python["reader"], ("direct", "public API", "none"))
        self.assertEqual(python["fallback_reason"] is None, python["reader"] == "direct")

    def test_the_parts_are_there(self):
        stats = stackweave.stats()
        self.assertEqual(list(stats), ["captures", "unwind", "python", "stacks", "symbolizer", "answers", "errors"])
        self.assertIn(stats["unwind"]["unload_watch"], ("counters", "queries the loader", "never unloads"))

    def test_an_unknown_mode_of_resolving_is_an_error_of_the_package(self):
        script = """
import stackweave
try:
    stackweave.capture().frames
except stackweave.StackweaveError as error:
    assert stackweave.stats()["symbolizer"] == {"error": str(error)}
    print(error)
"""
        shown = run_python(script, STACKWEAVE_SYMBOLIZE_MODE="quick")
        self.assertIn('unknown symbolize mode "quick"', shown)

    def test_other_modes_resolve_too(self):
        script = "import stackweave; print(stackweave.capture().frames[0].name)"
        for mode in ("fast", "dladdr"):
            self.assertEqual(run_python(script, STACKWEAVE_SYMBOLIZE_MODE=mode).strip(), "<module>")
        self.assertNotIn("STACKWEAVE_SYMBOLIZE_MODE", os.environ)
