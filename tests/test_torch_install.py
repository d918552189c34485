"""Stackweave replaces torch's functions for tracebacks, and restores them. Skipped where torch is not installed."""

import copy
import gc
import importlib.util
import os
import pickle
import sys
import tempfile
import threading
import types
import unittest
import weakref
from unittest import mock

import stackweave
import stackweave.torch
from tests.support import run_python
from tests.torch_dynamo_support import HAS_TORCH
from tests.torch_install_support import InstallCase

if HAS_TORCH:
    from torch._C import _profiler as profiler
    from torch.utils._traceback import CapturedTraceback

METHODS = ("extract", "summary", "format", "format_all", "cleanup", "__getstate__", "__init__")


class InstallTests(InstallCase):
    def test_restores_torch(self):
        before = {name: vars(CapturedTraceback)[name] for name in METHODS}
        gather = profiler.gather_traceback
        self.assertNotIsInstance(self.own["gather_traceback"], types.FunctionType)
        with stackweave.torch.installed():
            self.assertTrue(self.is_ours())
        self.assertFalse(self.is_ours())
        self.assertIs(profiler.gather_traceback, gather)
        self.assertEqual({name: vars(CapturedTraceback)[name] for name in METHODS}, before)

    def test_twice_is_once(self):
        stackweave.torch.install()
        stackweave.torch.install()
        self.assertTrue(self.is_ours())
        stackweave.torch.uninstall()
        self.assertFalse(self.is_ours())
        stackweave.torch.uninstall()
        self.assertFalse(self.is_ours())

    def test_blocks_can_be_nested(self):
        with stackweave.torch.installed():
            with stackweave.torch.installed():
                stackweave.torch.install()
                stackweave.torch.uninstall()
                self.assertTrue(self.is_ours())
            self.assertTrue(self.is_ours())
        self.assertFalse(self.is_ours())

    def test_a_block_keeps_the_functions_of_install(self):
        stackweave.torch.install()
        with stackweave.torch.installed():
            pass
        self.assertTrue(self.is_ours())

    def test_a_block_ends_with_an_exception(self):
        with self.assertRaises(KeyError), stackweave.torch.installed():
            raise KeyError
        self.assertFalse(self.is_ours())

    def test_the_class_stays_the_same(self):
        before = CapturedTraceback
        with stackweave.torch.installed():
            self.assertIs(sys.modules["torch.utils._traceback"].CapturedTraceback, before)
            self.assertIs(sys.modules["torch._guards"].CapturedTraceback, before)
            self.assertIsInstance(before.extract().tb, stackweave.Traceback)

    def test_modules_that_have_imported_the_names_get_our_functions(self):
        before, meanwhile = types.ModuleType("imported_before"), types.ModuleType("imported_meanwhile")
        before.gather_traceback, before.other_name = self.own["gather_traceback"], self.own["symbolize_tracebacks"]
        sys.modules.update({module.__name__: module for module in (before, meanwhile)})
        self.addCleanup(lambda: [sys.modules.pop(module.__name__) for module in (before, meanwhile)])
        with stackweave.torch.installed():
            self.assertIsInstance(before.gather_traceback(), stackweave.Traceback)
            self.assertIs(before.other_name, self.own["dispatcher"])
            exec("from torch._C._profiler import gather_traceback, symbolize_tracebacks", vars(meanwhile))
            self.assertIsInstance(meanwhile.gather_traceback(), stackweave.Traceback)
            held = meanwhile.gather_traceback(), before.gather_traceback()
        for module in (before, meanwhile):
            self.assertIs(module.gather_traceback, self.own["gather_traceback"])
        # Callers of torch's function may pass objects that ours has captured.
        self.assertEqual(len(before.other_name(list(held))), 2)
        self.assertEqual(len(meanwhile.symbolize_tracebacks(list(held))), 2)

    def test_a_kept_function_of_ours_calls_torchs_after_the_end(self):
        with stackweave.torch.installed():
            kept = {"gather": profiler.gather_traceback}
        self.assertIs(type(kept["gather"](True, False, cpp=False)), type(self.own["gather_traceback"]()))

    def test_threads_install_and_uninstall(self):
        failures = []

        def work():
            try:
                for _ in range(20):
                    with stackweave.torch.installed():
                        tb = CapturedTraceback.extract()
                        assert isinstance(tb.tb, stackweave.Traceback), tb.tb
                    assert tb.format()[-1].splitlines()[0].endswith("in work")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertFalse(self.is_ours())

    def test_a_forked_child_has_what_its_parent_had(self):
        with stackweave.torch.installed():
            before = CapturedTraceback.extract()
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    text = [before.format()[-1], CapturedTraceback.extract().format()[-1]]
                    stackweave.torch._install._installation.blocks = 0
                    stackweave.torch.uninstall()
                    text.append(str(type(CapturedTraceback.extract().tb)))
                    os.write(writer, "".join(text).encode())
                finally:
                    os._exit(0)
            os.close(writer)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            with open(reader) as output:
                text = output.read()
            self.assertEqual(text.count("in test_a_forked_child_has_what_its_parent_had"), 2, text)
            self.assertIn("torch._C._profiler.CapturedTraceback", text)

    def test_a_failed_installation_is_not_retried(self):
        installation = stackweave.torch._install._installation
        torch = mock.patch.object(installation, "torch", None)
        find = mock.patch.object(
            stackweave.torch._install, "_find_torch", side_effect=stackweave.StackweaveError("odd")
        )
        for install in (stackweave.torch.install, lambda: stackweave.torch.installed().__enter__()):
            with torch, find, self.assertRaisesRegex(stackweave.StackweaveError, "^odd$"):
                install()
            self.assertEqual((installation.is_requested, installation.blocks), (False, 0))
            self.assertFalse(self.is_ours())
        with stackweave.torch.installed():
            self.assertTrue(self.is_ours())
        self.assertFalse(self.is_ours())

    def test_lazy_modules_are_not_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lazy_module.py")
            with open(path, "w") as file:
                file.write("raise RuntimeError('it was loaded')")
            spec = importlib.util.spec_from_file_location("lazy_module", path)
            spec.loader = importlib.util.LazyLoader(spec.loader)
            module = importlib.util.module_from_spec(spec)
            with mock.patch.dict(sys.modules, lazy_module=module):
                spec.loader.exec_module(module)
                with stackweave.torch.installed():
                    self.assertTrue(self.is_ours())
                self.assertIsNot(type(module), types.ModuleType, "the module is not loaded")
                with self.assertRaisesRegex(RuntimeError, "it was loaded"):
                    _ = module.anything

    def test_unknown_rules_of_dynamo_are_ignored(self):
        rules = types.SimpleNamespace(add=mock.Mock(side_effect=ValueError))
        with mock.patch.dict(sys.modules, {stackweave.torch._install._TRACE_RULES: rules}):
            stackweave.torch._install._leave_uncompiled()
        rules.add.assert_called_once()

    def test_names_are_public_ones(self):
        for name in stackweave.torch.__all__:
            self.assertEqual(getattr(stackweave.torch, name).__module__, "stackweave.torch", name)

    def test_without_torch_there_is_an_error(self):
        code = """
import sys
sys.modules["torch"] = None
import stackweave.torch
for install in (stackweave.torch.install, stackweave.torch.installed().__enter__):
    try:
        install()
    except stackweave.StackweaveError as error:
        print(error)
stackweave.torch.uninstall()
print(stackweave.torch.is_installed())
"""
        lines = run_python(code).splitlines()
        self.assertEqual(lines[-1], "False")
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], "^torch can't be imported, so there is nothing to install in: ")

    def test_imports_torch_but_not_inductor(self):
        code = """
import sys, warnings
warnings.simplefilter("ignore")
import stackweave.torch
assert "torch" not in sys.modules
stackweave.torch.install()
from torch.utils._traceback import CapturedTraceback
from torch._C._profiler import gather_traceback, symbolize_tracebacks
print(CapturedTraceback.extract().format())
symbolize_tracebacks([gather_traceback()])
print([name for name in sys.modules if name.startswith(("torch._inductor", "torch._dynamo"))])
"""
        lines = run_python(code).splitlines()
        self.assertEqual(lines, [r"""['  File "<string>", line 9, in <module>\n']""", "[]"])


class ObjectTests(InstallCase):
    def test_tracebacks_of_torch_are_shown_too(self):
        of_torch = self.own["gather_traceback"](True, False, False)
        with stackweave.torch.installed():
            ours = profiler.gather_traceback(True, False, False)
            mixed = profiler.symbolize_tracebacks([of_torch, ours, of_torch, ours])
        self.assertEqual([frames[0]["name"] for frames in mixed], ["test_tracebacks_of_torch_are_shown_too"] * 4)
        self.assertEqual([frame["name"] for frame in mixed[0]], [frame["name"] for frame in mixed[1]])
        self.assertIs(mixed[0], mixed[2])
        self.assertIs(mixed[1], mixed[3])
        self.assertIs(mixed[1][1], mixed[3][1])
        self.assertEqual(mixed[1][0]["line"], mixed[0][0]["line"] + 2)

    def test_tracebacks_of_ours_are_shown_afterwards(self):
        with stackweave.torch.installed():
            ours, captured = profiler.gather_traceback(), CapturedTraceback.extract()
            formatted = captured.format()
        of_torch = profiler.gather_traceback(cpp=False)
        frames = profiler.symbolize_tracebacks([of_torch, ours])
        names = {frame["name"] for frame in frames[1]}
        self.assertEqual({frame["name"] for frame in frames[0]} - names, set())
        self.assertEqual(captured.format(), formatted)
        self.assertEqual(CapturedTraceback.format_all([captured, CapturedTraceback.extract(), captured])[2], formatted)

    def test_wrong_objects_are_refused(self):
        for _ in range(2):
            for wrong in (None, 1, "text", object(), CapturedTraceback(None)):
                with self.assertRaisesRegex(TypeError, "item 0 must be a captured traceback, not "):
                    profiler.symbolize_tracebacks([wrong])
            for wrong in ((), 5, None):
                with self.assertRaisesRegex(TypeError, "takes a list of tracebacks, not "):
                    profiler.symbolize_tracebacks(wrong)
            self.assertEqual(profiler.symbolize_tracebacks([]), [])
            stackweave.torch.install()

    def test_flags_are_accepted_as_torch_accepts_them(self):
        with stackweave.torch.installed():
            for values in ((1, 0, 0), (True, None, False), (True, False, False)):
                by_place, by_name = (
                    profiler.gather_traceback(*values),
                    profiler.gather_traceback(**dict(zip(("python", "script", "cpp"), values))),
                )
                for taken in (by_place, by_name):
                    frames = profiler.symbolize_tracebacks([taken])[0]
                    self.assertEqual(frames[0]["name"], "test_flags_are_accepted_as_torch_accepts_them")
                    self.assertEqual({frame.kind for frame in taken.frames}, {"python"})
            self.assertEqual(profiler.symbolize_tracebacks([profiler.gather_traceback(False, False, False)]), [[]])
            native = profiler.symbolize_tracebacks([profiler.gather_traceback(python=False)])[0]
            self.assertNotIn(__file__, {frame["filename"] for frame in native})
            self.assertIn("Eval", native[0]["name"] + native[1]["name"])
            for wrong in ("x", [1], object()):
                with self.assertRaises(TypeError):
                    profiler.gather_traceback(wrong)
            with self.assertRaises(TypeError):
                profiler.gather_traceback(foo=1)

    def test_pickles_and_copies_have_no_frames(self):
        with stackweave.torch.installed():
            captured = CapturedTraceback.extract(skip=2)
            self.assertEqual(captured.skip, 3)
            for other in (pickle.loads(pickle.dumps(captured)), copy.copy(captured), copy.deepcopy(captured)):
                self.assertIsNone(other.tb)
                self.assertEqual(other.skip, 3)
                self.assertEqual((list(other.summary()), other.format()), ([], []))
            captured.cleanup()
            self.assertIsNone(captured.tb)
            self.assertEqual(CapturedTraceback.format_all([captured, CapturedTraceback.extract()])[0], [])

    def test_a_traceback_keeps_nothing_alive(self):
        class Kept:
            pass

        def take():
            kept = Kept()
            return weakref.ref(kept), CapturedTraceback.extract(), profiler.gather_traceback()

        names = {"take": take}
        exec("def run(): return take()", names)
        code = weakref.ref(names["run"].__code__)
        with stackweave.torch.installed():
            kept, captured, gathered = names["run"]()
        self.assertIsNone(kept())
        names.clear()
        self.assertIsNone(code())
        self.assertIn("in run", captured.format()[-2])
        self.assertIn("run", [frame["name"] for frame in profiler.symbolize_tracebacks([gathered])[0]])
        self.assertFalse(gc.is_tracked(gathered))

    def test_skip_with_native_frames_is_refused(self):
        with stackweave.torch.installed():
            for flags in ({"cpp": True}, {"script": True}):
                with self.assertRaises(AssertionError):
                    CapturedTraceback.extract(skip=1, **flags)


if __name__ == "__main__":
    unittest.main()
