"""Hooks are installed in torch and removed without a trace. Tests that need torch are skipped without it."""

import os
import sys
import threading
import unittest
from unittest import mock

import stackweave
from stackweave.torch import dynamo
from stackweave.torch._import_watch import ImportWatch
from tests.recordings import RecordingCase
from tests.torch_dynamo_support import HAS_TORCH, DynamoCase, hooked_attributes, named, row_of, rows_of

LATER = """
import sys
import stackweave
import stackweave.torch.dynamo
assert not any(name.split(".")[0] == "torch" for name in sys.modules)
with stackweave.torch.dynamo.profile(sys.argv[1]) as profile:
    assert profile.hook_state() == "waiting"
    import torch
    def double(x):
        return x * 2
    torch.compile(double, backend="eager")(torch.ones(3))
    assert profile.hook_state() == "hooked"
    spec = sys.modules["torch._dynamo"].__spec__
    assert type(spec.loader).__module__.startswith(("importlib", "_frozen_importlib")), spec.loader
assert profile.hook_state() == "unhooked"
assert not any(type(finder).__module__.startswith("stackweave") for finder in sys.meta_path)
compiled = stackweave.torch.dynamo.compiles(profile.recording)
print(*[(each.name, each.failed) for each in compiled], *profile.hook_errors())
"""

FORKED = """
import os, sys
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a forked child can't use CUDA
import stackweave, torch
import stackweave.torch.dynamo
def double(x):
    return x * 2
def triple(x):
    return x * 3
with stackweave.torch.dynamo.profile(sys.argv[1]) as profile:
    torch.compile(double, backend="eager")(torch.ones(3))
    child = os.fork()
    if child == 0:
        torch.compile(triple, backend="eager")(torch.ones(3))
        profile.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
folder = os.path.dirname(sys.argv[1])
both = stackweave.open([os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".swv")])
print(*sorted(each.name for each in stackweave.torch.dynamo.compiles(both)))
"""


class Installation(DynamoCase):
    def test_all_attributes_are_restored(self):
        before = hooked_attributes()
        with dynamo.profile() as profile:
            during = hooked_attributes()
            self.assertEqual(profile.hook_state(), "hooked")
            self.assertTrue(all(during[name] is not before[name] for name in during if "_compile" in name))
        self.assertEqual(profile.hook_state(), "unhooked")
        self.assert_same_attributes(before)

    def test_an_exception_in_the_with_statement(self):
        before = hooked_attributes()
        with self.assertRaises(ZeroDivisionError), dynamo.profile():
            raise ZeroDivisionError
        self.assert_same_attributes(before)

    def test_a_second_start_changes_nothing(self):
        with dynamo.profile() as profile:
            during = hooked_attributes()
            self.assertIs(profile.start(), profile)
            self.assert_same_attributes(during)

    def test_several_profiles_record_the_same_and_end_in_any_order(self):
        x = self.torch.ones(3)
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)):
            with self.subTest(order):
                before = hooked_attributes()
                self.torch.compiler.reset()
                profiles = [dynamo.profile() for _ in range(3)]
                self.torch.compile(self.corpus.calls, backend="eager")(x)
                profiles[order[0]].stop()
                self.torch.compile(self.corpus.plain, backend="eager")(x)
                profiles[order[1]].stop()
                profiles[order[2]].stop()
                self.assert_same_attributes(before)
                first, *others = (profiles[place] for place in order)
                self.assertEqual([each.name for each in dynamo.compiles(first.recording)], ["calls"])
                for profile in others:
                    self.assertEqual([each.name for each in dynamo.compiles(profile.recording)], ["calls", "plain"])
                for profile in profiles:
                    self.assertEqual((profile.hook_errors(), profile.explain_problems()), ([], []))
                    self.assertEqual(row_of(profile, self.corpus.calls).calls, 1)

    def test_nested_profiles(self):
        before, x = hooked_attributes(), self.torch.ones(3)
        with dynamo.profile() as outer:
            with dynamo.profile(phases=False) as inner:
                self.torch.compile(self.corpus.graph_break, backend="eager")(x)
            self.torch.compile(self.corpus.plain, backend="eager")(x)
        self.assert_same_attributes(before)
        outside, inside = (
            [(each.compile_id, each.name, each.attempts) for each in dynamo.compiles(profile.recording)]
            for profile in (outer, inner)
        )
        self.assertEqual(outside[:-1], inside)
        self.assertEqual(outside[-1][1], "plain")

    def test_a_replacement_of_our_hook_stays_and_works(self):
        module = sys.modules["torch._dynamo.convert_frame"]
        before = module._compile
        self.addCleanup(setattr, module, "_compile", before)
        seen = []
        profile = dynamo.profile()
        ours = module._compile

        def other_compile(*args, **kwargs):
            seen.append(args[0].co_name)
            return ours(*args, **kwargs)

        module._compile = other_compile
        profile.stop()
        self.assertIs(module._compile, other_compile)
        self.torch.compile(self.corpus.plain, backend="eager")(self.torch.ones(3))
        self.assertEqual(seen, ["plain"])
        self.assertEqual(dynamo.compiles(profile.recording), [])
        module._compile = before

    def test_it_begins_and_ends_during_compilations(self):
        profiles = []

        def begins(graph, inputs):
            profiles.append(dynamo.profile())
            return graph

        def ends(graph, inputs):
            profiles[-1].stop()
            return graph

        x = self.torch.ones(3)
        self.assert_same(self.torch.compile(self.corpus.plain, backend=begins)(x), self.corpus.plain(x))
        self.assert_same(self.torch.compile(self.corpus.calls, backend=ends)(x), self.corpus.calls(x))
        (profile,) = profiles
        self.assertEqual(profile.hook_errors(), [])
        self.assertEqual([each.name for each in dynamo.compiles(profile.recording)], ["calls"])
        self.assertEqual(row_of(profile, self.corpus.calls).calls, 1)


class Errors(DynamoCase):
    def failing(self, name):
        """Returns a profile whose method fails. Asserts that the compiled function and torch are not affected."""
        before = hooked_attributes()
        x = self.torch.ones(3)
        with mock.patch.object(stackweave.Timing, name, side_effect=ValueError("ours"), create=True):
            with self.assertWarnsRegex(RuntimeWarning, "ours"):
                with dynamo.profile() as profile:
                    result = self.torch.compile(self.corpus.graph_break, backend="eager")(x)
        self.assert_same(result, self.corpus.graph_break(x))
        self.assert_same_attributes(before)
        return profile

    def test_an_error_of_ours_is_reported_and_torch_does_not_see_it(self):
        profile = self.failing("frame")
        self.assertIn("ValueError: ours", "\n".join(profile.hook_errors()))
        self.assertEqual(len(dynamo.compiles(profile.recording)), 4)
        self.assertIn("ValueError: ours", dynamo.report(profile.recording, errors=profile.hook_errors()))

    def test_an_error_of_ours_at_the_begin_of_a_compilation(self):
        profile = self.failing("run")
        self.assertEqual(dynamo.compiles(profile.recording), [])
        self.assertGreater(row_of(profile, self.corpus.graph_break).calls, 0)

    def test_something_that_torch_no_longer_has(self):
        from stackweave.torch._dynamo import hooks

        gone = hooks.ROOT[0]._replace(name="no_longer_there")
        with mock.patch.object(hooks, "ROOT", (gone, hooks.ROOT[1])):
            with self.assertWarnsRegex(RuntimeWarning, "no_longer_there"):
                with dynamo.profile() as profile:
                    self.torch.compile(self.corpus.plain, backend="eager")(self.torch.ones(3))
        self.assertEqual(len(dynamo.compiles(profile.recording)), 1)


class Compiled(DynamoCase):
    def test_torch_does_not_compile_our_own_functions(self):
        """Functions that torch does not compile may report phases while a compiled program runs."""
        module = sys.modules["torch._dynamo.convert_frame"]
        seen = []
        original = module.ConvertFrameAssert.__call__

        def watched(convert, frame, *args, **kwargs):
            seen.append(frame.f_code.co_filename)
            return original(convert, frame, *args, **kwargs)

        @self.torch._dynamo.disable(recursive=False)
        def timed(x):
            with self.torch._dynamo.utils.dynamo_timed("at run time"):
                return x + 1

        with mock.patch.object(module.ConvertFrameAssert, "__call__", watched):
            _, profile = self.profiled(lambda x: timed(x) * 2, self.torch.ones(3))
        self.assertEqual(named(profile, "at run time").calls, 1)
        self.assertIn(__file__, seen)
        self.assertEqual([name for name in seen if "stackweave/torch" in name], [])


class OlderTorch(DynamoCase):
    def test_inlined_calls_are_the_same_without_torchs_own_hook(self):
        from stackweave.torch._dynamo import hooks

        def counts(profile):
            return {key: (row.calls, row.primitive_calls, row.failed) for key, row in rows_of(profile).items()}

        gone = hooks.INLINED._replace(name="no_longer_there")
        x = self.torch.ones(3)
        for function in (*self.corpus.FUNCTIONS, self.corpus.graph_break):
            with self.subTest(function.__name__):
                self.torch.compiler.reset()
                _, profile = self.profiled(function, x)
                self.torch.compiler.reset()
                with mock.patch.object(hooks, "INLINED", gone):
                    result, older = self.profiled(function, x)
                self.assert_same(result, function(x))
                self.assertEqual(counts(older), counts(profile))


class Threads(DynamoCase):
    def test_each_thread_has_its_own_compilations(self):
        functions = (self.corpus.calls, self.corpus.recursive)
        x = self.torch.ones(3)
        results = {}
        ready = threading.Barrier(len(functions))

        def compile_one(function):
            ready.wait()
            results[function] = self.torch.compile(function, backend="eager")(x)

        with dynamo.profile() as profile:
            threads = [threading.Thread(target=compile_one, args=(function,)) for function in functions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assert_clean(profile)
        for function in functions:
            self.assert_same(results[function], function(x))
        rows = dynamo.compiles(profile.recording)
        self.assertEqual({row.name for row in rows}, {"calls", "recursive"})
        self.assertEqual(len({row.thread for row in rows}), 2)
        self.assertEqual(row_of(profile, self.corpus.countdown).calls, 5)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Programs(RecordingCase):
    def test_torch_that_is_imported_later(self):
        self.assertEqual(self.run_script(LATER, stderr=".*"), "('double', False)\n")

    def test_a_forked_child_has_a_file_of_its_own(self):
        self.assertEqual(self.run_script(FORKED, stderr=".*"), "double triple\n")


def own_finders():
    return [finder for finder in sys.meta_path if type(finder).__module__.startswith("stackweave")]


class Imports(unittest.TestCase):
    def test_nothing_of_torch_is_imported(self):
        import subprocess

        code = "import sys, stackweave.torch.dynamo; sys.exit('torch' in sys.modules or 'pstats' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env=os.environ, timeout=60).returncode, 0)

    def watched(self, name):
        seen = []
        watch = ImportWatch(name, lambda: seen.append(name in sys.modules))
        self.addCleanup(watch.stop)
        return watch, seen

    def test_a_later_import_notifies_once(self):
        watch, seen = self.watched("colorsys")
        sys.modules.pop("colorsys", None)
        watch.start()
        self.assertEqual((len(own_finders()), seen), (1, []))
        import colorsys

        self.assertEqual(seen, [True])
        self.assertEqual(own_finders(), [])
        self.assertIs(colorsys.__spec__.loader, colorsys.__loader__)
        self.assertIs(type(colorsys.__loader__), type(unittest.__loader__))
        sys.modules.pop("colorsys")
        import colorsys

        self.assertEqual(seen, [True])

    def test_a_module_that_is_already_imported(self):
        watch, seen = self.watched("json")
        import json  # noqa: F401

        watch.start()
        self.assertEqual(seen, [True])
        self.assertEqual(own_finders(), [])

    def test_an_import_after_the_stop_does_not_notify(self):
        sys.modules.pop("colorsys", None)
        watch, seen = self.watched("colorsys")
        watch.start()
        watch.stop()
        import colorsys  # noqa: F401

        self.assertEqual(seen, [])

    def test_a_module_that_does_not_exist(self):
        watch, seen = self.watched("no_such_module_at_all")
        watch.start()
        with self.assertRaises(ModuleNotFoundError):
            import no_such_module_at_all  # noqa: F401
        self.assertEqual(seen, [])
        watch.stop()


if __name__ == "__main__":
    unittest.main()
