"""A profile of torch.compile has its functions, phases and compilations. Skipped where torch is not installed."""

import contextlib
import unittest

from stackweave.torch import dynamo
from tests.torch_dynamo_support import HAS_COMPILER, DynamoCase, named, row_of, rows_of


class Functions(DynamoCase):
    def test_a_function_is_traced_once_and_nothing_else_is_in_it(self):
        x = self.torch.ones(3)
        result, profile = self.profiled(self.corpus.plain, x)
        self.assert_same(result, self.corpus.plain(x))
        row = row_of(profile, self.corpus.plain)
        self.assertEqual((row.name, row.calls, row.primitive_calls, row.failed), ("plain", 1, 1, 0))
        self.assertEqual(row.bytecode_count, len(self.corpus.plain.__code__.co_code) // 2)
        self.assertEqual(len(rows_of(profile)), 1)

    def test_calls_are_inlined_where_they_are_made(self):
        x = self.torch.ones(3)
        result, profile = self.profiled(self.corpus.calls, x)
        self.assert_same(result, self.corpus.calls(x))
        self.assertEqual(row_of(profile, self.corpus.shift).calls, 2)
        halve = row_of(profile, self.corpus.halve)
        self.assertEqual(halve.calls, 3)
        edges = {caller.name: caller.calls for caller in halve.callers}
        self.assertEqual(edges, {"shift": 2, "calls": 1})

    def test_modules_in_modules(self):
        net, x = self.corpus.net(), self.torch.ones(2, 4)
        result, profile = self.profiled(net, x)
        self.assert_same(result, net(x))
        block = row_of(profile, self.corpus.Block.forward)
        self.assertEqual(block.calls, 3)
        self.assertIn(block.name, ("Block.forward", "forward"))
        self.assertEqual(row_of(profile, self.torch.nn.Linear.forward).calls, 7)

    def test_recursion_is_counted_as_cprofile_does(self):
        x = self.torch.ones(3)
        result, profile = self.profiled(self.corpus.recursive, x)
        self.assert_same(result, self.corpus.recursive(x))
        row = row_of(profile, self.corpus.countdown)
        self.assertEqual((row.calls, row.primitive_calls), (5, 1))
        self.assertLessEqual(row.self, row.total)
        result, profile = self.profiled(self.corpus.mutually_recursive, x)
        for function in (self.corpus.even, self.corpus.odd):
            row = row_of(profile, function)
            self.assertEqual((row.calls, row.primitive_calls), (3, 1))

    def test_a_generator_that_is_done_has_not_failed(self):
        x = self.torch.ones(3)
        result, profile = self.profiled(self.corpus.generator, x)
        self.assert_same(result, self.corpus.generator(x))
        row = row_of(profile, self.corpus.numbers)
        self.assertGreaterEqual(row.calls, 4)
        self.assertEqual(row.failed, 0)

    def test_an_exception_of_the_traced_program_is_no_failure(self):
        x = self.torch.ones(3)
        result, profile = self.profiled(self.corpus.catches, x)
        self.assert_same(result, self.corpus.catches(x))
        self.assertEqual([row.failed for row in rows_of(profile).values()], [0, 0, 0])
        raised = [event.details["raised"] for event in profile.recording.events() if "raised" in (event.details or {})]
        self.assertEqual(raised, ["ObservedKeyError"])

    def test_self_times_add_up_to_the_time_of_the_compilations(self):
        _, profile = self.profiled(self.corpus.net(), self.torch.ones(2, 4))
        self_time = sum(row.self for row in profile.recording.phases())
        compiled = sum(row.duration for row in dynamo.compiles(profile.recording))
        self.assertAlmostEqual(self_time, compiled, places=6)

    def test_functions_alone(self):
        _, profile = self.profiled(self.corpus.calls, self.torch.ones(3), phases=False)
        self.assertEqual({row.name for row in profile.recording.phases()}, {"compile calls", "calls", "shift", "halve"})


class Breaks(DynamoCase):
    def test_a_break_inside_an_inlined_function_is_an_attempt_that_failed(self):
        x = self.torch.ones(3)
        result, profile = self.profiled(self.corpus.graph_break, x)
        self.assert_same(result, self.corpus.graph_break(x))
        row = row_of(profile, self.corpus.graph_break)
        self.assertEqual((row.calls, row.failed), (2, 1))
        self.assertEqual(row_of(profile, self.corpus.breaks_inside).failed, 2)
        first = dynamo.compiles(profile.recording)[0]
        self.assertEqual((first.name, first.attempts, first.failed), ("graph_break", 2, False))
        self.assertEqual(len(first.restart_reasons), 1)
        self.assertEqual(
            (named(profile, "compile_attempt_0").failed, named(profile, "compile_attempt_1").failed), (2, 0)
        )
        resumed = [each.name for each in dynamo.compiles(profile.recording) if "resume" in each.name]
        self.assertEqual(len(resumed), 2)

    def test_nested_graph_breaks(self):
        config = self.torch._dynamo.config
        if not hasattr(config, "nested_graph_breaks"):
            self.skipTest("this torch has no nested graph breaks")
        x = self.torch.ones(3)
        with config.patch(nested_graph_breaks=True):
            result, profile = self.profiled(self.corpus.graph_break, x)
        self.assert_same(result, self.corpus.graph_break(x))
        self.assertFalse(any(each.failed for each in dynamo.compiles(profile.recording)))

    def test_an_error_of_a_whole_graph_is_torchs_own(self):
        compiled = self.torch.compile(self.corpus.graph_break, backend="eager", fullgraph=True)
        with self.assertRaises(self.torch._dynamo.exc.Unsupported) as without:
            compiled(self.torch.ones(3))
        self.torch.compiler.reset()
        with dynamo.profile() as profile:
            with self.assertRaises(self.torch._dynamo.exc.Unsupported) as error:
                compiled(self.torch.ones(3))
        self.assert_clean(profile)
        self.assertEqual(str(error.exception).splitlines()[0], str(without.exception).splitlines()[0])
        (row,) = dynamo.compiles(profile.recording)
        self.assertTrue(row.failed)
        self.assertEqual(row.fail_reason.count("\n"), 0)
        self.assertIn("Unsupported", row.attributes["error"])
        self.assertEqual(row_of(profile, self.corpus.graph_break).failed, 1)

    def test_the_stack_that_torch_logs_has_no_frames_of_ours(self):
        def logged(around):
            self.torch.compiler.reset()
            with around():
                self.torch.compile(self.corpus.plain, backend="eager")(self.torch.ones(3))
            return getattr(self.torch._dynamo.utils.get_compilation_metrics()[-1], "stack_trace", None)

        stacks = [logged(around) for around in (contextlib.nullcontext, dynamo.profile)]
        if not stacks[0]:
            self.skipTest("this torch does not keep that stack")
        self.assertIn("Name: plain", stacks[0][-1])
        self.assertEqual(stacks[1], stacks[0])

    def test_a_backend_that_fails(self):
        def refuses(graph, inputs):
            raise RuntimeError("not on this machine")

        compiled = self.torch.compile(self.corpus.plain, backend=refuses)
        with dynamo.profile() as profile:
            with self.assertRaises(self.torch._dynamo.exc.BackendCompilerFailed):
                compiled(self.torch.ones(3))
        (row,) = dynamo.compiles(profile.recording)
        self.assertTrue(row.failed)
        self.assertIn("not on this machine", row.fail_reason)
        self.assertEqual(row.backend, "refuses")
        self.assertEqual(named(profile, "backend_compile").failed, 1)
        self.assertEqual(row_of(profile, self.corpus.plain).failed, 0)

    def test_an_exception_that_leaves_the_compiled_function(self):
        compiled = self.torch.compile(self.corpus.refuses, backend="eager")
        with dynamo.profile() as profile:
            with self.assertRaisesRegex(KeyError, "not this one"):
                compiled(self.torch.ones(3))
        self.assert_clean(profile)
        self.assertTrue(all(each.failed or each.fail_reason for each in dynamo.compiles(profile.recording)))


class Compilations(DynamoCase):
    def test_a_recompilation_says_why(self):
        compiled = self.torch.compile(self.corpus.plain, backend="eager", dynamic=False)
        with dynamo.profile() as profile:
            compiled(self.torch.ones(3))
            compiled(self.torch.ones(4))
            compiled(self.torch.ones(4))
        first, second = dynamo.compiles(profile.recording)
        self.assertEqual((first.compile_id[-2:], second.compile_id[-2:]), ("/0", "/1"))
        self.assertIsNone(first.recompile_reason)
        self.assertIn("size mismatch", second.recompile_reason)
        self.assertEqual((first.graph_ops, first.direction, first.backend), (3, "forward", "eager"))
        self.assertEqual(named(profile, "compile plain").calls, 2)

    def test_modules_of_torchs_own_have_their_names(self):
        nn = self.torch.nn
        with dynamo.profile() as profile:
            for module in (nn.Linear(3, 2), nn.Sequential(nn.ReLU())):
                self.torch.compile(module, backend="eager")(self.torch.ones(1, 3))
        codes = [kind.forward.__code__ for kind in (nn.Linear, nn.Sequential)]
        expected = [(getattr(code, "co_qualname", code.co_name), code.co_filename) for code in codes]
        self.assertEqual([(each.name, each.filename) for each in dynamo.compiles(profile.recording)], expected)

    def test_a_flag_that_changes(self):
        compiled = self.torch.compile(self.corpus.plain, backend="eager")
        with dynamo.profile() as profile:
            compiled(self.torch.ones(3))
            with self.torch.no_grad():
                compiled(self.torch.ones(3))
        self.assertRegex(dynamo.compiles(profile.recording)[1].recompile_reason, "(?i)grad")

    def test_a_reset_in_between(self):
        compiled = self.torch.compile(self.corpus.plain, backend="eager")
        with dynamo.profile() as profile:
            compiled(self.torch.ones(3))
            self.torch.compiler.reset()
            compiled(self.torch.ones(3))
        self.assert_clean(profile)
        self.assertEqual([each.recompile_reason for each in dynamo.compiles(profile.recording)], [None, None])
        self.assertEqual(row_of(profile, self.corpus.plain).calls, 2)

    def test_a_compilation_inside_another_one(self):
        inner = self.torch.compile(self.corpus.halve, backend="eager")

        def compiles_itself(graph, inputs):
            with self.torch._dynamo.utils.preserve_rng_state():
                self.assert_same(inner(self.torch.ones(5)), self.torch.full((5,), 0.5))
            return graph

        _, profile = self.profiled(self.corpus.plain, self.torch.ones(3), backend=compiles_itself)
        outer, nested = dynamo.compiles(profile.recording)
        self.assertEqual((outer.parent, nested.parent), (None, outer.number))
        self.assertEqual((outer.name, nested.name), ("plain", "halve"))
        self.assertLessEqual(nested.duration, outer.duration)

    def test_the_report_has_compilations_and_functions(self):
        _, profile = self.profiled(self.corpus.graph_break, self.torch.ones(3))
        text = dynamo.report(profile.recording)
        for part in ("compilations in", "graph_break", "restart reasons:", "graph_ops 1", "bytecode_tracing"):
            self.assertIn(part, text)
        with dynamo.profile() as profile:
            pass
        self.assertEqual(dynamo.report(profile.recording, errors=profile.hook_errors()), "Nothing was compiled.")


class Phases(DynamoCase):
    def test_tracing_and_what_comes_after_it(self):
        _, profile = self.profiled(self.corpus.calls, self.torch.ones(3))
        (compiled,) = dynamo.compiles(profile.recording)
        for name in ("entire_frame_compile", "bytecode_tracing", "backend_compile", "build_guards"):
            self.assertIn(name, compiled.phases)
        callers = {name: named(profile, name).callers[0].name for name in ("bytecode_tracing", "backend_compile")}
        self.assertEqual(callers, dict.fromkeys(callers, "compile_attempt_0"))
        self.assertEqual(row_of(profile, self.corpus.calls).callers[0].name, "bytecode_tracing")

    def test_autograd_ahead_of_time(self):
        x = self.torch.ones(3, requires_grad=True)
        with dynamo.profile() as profile:
            self.torch.compile(self.corpus.plain, backend="aot_eager")(x).sum().backward()
        self.assert_clean(profile)
        self.assert_same(x.grad, x.cos() - x.sin())
        self.assertIn("create_aot_dispatcher_function", dynamo.compiles(profile.recording)[0].phases)

    @unittest.skipUnless(HAS_COMPILER, "there is no compiler for C++")
    def test_inductor_forward_and_backward(self):
        x = self.torch.ones(3, requires_grad=True)
        with self.torch._inductor.utils.fresh_cache(), dynamo.profile() as profile:
            self.torch.compile(self.corpus.plain, backend="inductor")(x).sum().backward()
        self.assert_clean(profile)
        self.assert_same(x.grad, x.cos() - x.sin())
        rows = dynamo.compiles(profile.recording)
        self.assertEqual([row.direction for row in rows], ["forward", "backward"])
        self.assertEqual({row.name for row in rows}, {"plain"})
        self.assertEqual(len({row.compile_id for row in rows}), 1)
        self.assertIn("inductor_compile", rows[0].phases)
        self.assertIn("inductor_compile", rows[1].phases)


if __name__ == "__main__":
    unittest.main()
