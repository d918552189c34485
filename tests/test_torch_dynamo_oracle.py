"""Our profile agrees with that of torch's own profiler. Skipped where torch is not installed, or has no profiler."""

import unittest
from unittest import mock

from stackweave.torch import dynamo
from tests.torch_dynamo_support import DynamoCase, rows_of


class TorchsOwn(DynamoCase):
    """Torch does not count calls that it failed to trace or that raised: it adds their time to their caller."""

    def setUp(self):
        super().setUp()
        if not hasattr(self.torch._dynamo.config, "dynamo_profiler"):
            self.skipTest("this torch has no profiler of its own")

    def torch_timings(self, run):
        """Returns the timings of torch's profiler in all compilations of run()."""
        from torch._dynamo.dynamo_profiler import DynamoProfilerState

        states = []

        def keep(state, *_, **__):
            if state not in states:
                states.append(state)

        with (
            mock.patch.object(DynamoProfilerState, "dump_stats", keep),
            self.torch._dynamo.config.patch(dynamo_profiler=True),
        ):
            run()
        return [timing for state in states for timing in state.timings]

    def corpus_programs(self):
        x = self.torch.ones(3)
        for function in self.corpus.FUNCTIONS:
            yield function.__name__, lambda function=function: self.compiled(function, x)
        net = self.corpus.net()
        yield "net", lambda: self.compiled(net, self.torch.ones(2, 4))
        transformer = self.corpus.Transformer(width=8, heads=2, depth=2, tokens=16)
        yield "transformer", lambda: self.compiled(transformer, self.torch.ones(1, 5, dtype=self.torch.long))

    def compiled(self, function, x):
        self.torch.compiler.reset()
        return self.torch.compile(function, backend="eager")(x)

    def test_the_same_functions_are_counted_in_the_same_way(self):
        for name, run in self.corpus_programs():
            with self.subTest(name):
                of_torch = counted(self.torch_timings(run))
                with dynamo.profile(phases=False) as profile:
                    run()
                self.assert_clean(profile)
                self.assertEqual(ours_of(profile), of_torch)

    def test_both_at_once(self):
        """Both profilers run, and record the same calls of the same functions."""
        for name, run in self.corpus_programs():
            with self.subTest(name):
                with dynamo.profile(phases=False) as profile:
                    timings = self.torch_timings(run)
                self.assert_clean(profile)
                self.assertEqual(ours_of(profile), counted(timings))
                units = {(row.filename, row.lineno): row.bytecode_count for row in rows_of(profile).values()}
                for timing in timings:
                    self.assertEqual(units[timing.filename, timing.firstlineno], timing.bytecode_count // 2)

    def test_the_pstats_have_the_same_functions_and_edges(self):
        _, run = next(program for program in self.corpus_programs() if program[0] == "net")
        of_torch = self.torch_stats(run)
        with dynamo.profile(phases=False) as profile:
            run()
        ours = profile.recording.stats().stats
        self.assertEqual(calls_of(ours), calls_of(of_torch))
        self.assertEqual(edges_of(ours), edges_of(of_torch))
        for _, _, own, total, _ in ours.values():
            self.assertLessEqual(own, total + 1e-6)

    def torch_stats(self, run):
        from torch._dynamo.dynamo_profiler import DynamoProfilerState

        state = DynamoProfilerState()
        state.timings = self.torch_timings(run)
        return state.generate_pstats().stats

    def test_a_compilation_that_fails_with_torchs_profiler(self):
        x = self.torch.ones(3)
        with self.torch._dynamo.config.patch(dynamo_profiler=True):
            with self.assertRaises(self.torch._dynamo.exc.InternalTorchDynamoError):
                self.compiled(self.corpus.graph_break, x)
        with dynamo.profile() as profile:
            result = self.compiled(self.corpus.graph_break, x)
        self.assert_clean(profile)
        self.assert_same(result, self.corpus.graph_break(x))


def counted(timings):
    """Returns calls and primitive calls by file, line and name."""
    counts = {}
    for timing in timings:
        calls, primitive = counts.get(timing.func_key, (0, 0))
        counts[timing.func_key] = (calls + 1, primitive + timing.is_primitive_call)
    return counts


def ours_of(profile):
    """Returns the same of our profile, without the calls that torch leaves out: they failed, or raised at their end."""
    raised = {}
    stack = []
    for event in profile.recording.events():
        if event.role == "begin":
            stack.append(event.name)
        elif event.role == "end":
            name = stack.pop()
            raised[name] = raised.get(name, 0) + ("raised" in event.details)
    counts = {}
    for row in rows_of(profile).values():
        missed = row.failed + raised.get(row.name, 0)
        if row.calls > missed:
            key = (row.filename, row.lineno, row.name.split(".")[-1])
            counts[key] = (row.calls - missed, row.primitive_calls - missed)
    return counts


def calls_of(stats):
    """Returns calls and primitive calls of each function that has a file."""
    return {short(key): value[:2] for key, value in stats.items() if is_function(key)}


def edges_of(stats):
    return {
        (short(key), short(caller)): edge[0]
        for key, value in stats.items()
        for caller, edge in value[4].items()
        if is_function(key) and is_function(caller)
    }


def is_function(key):
    return key[0].endswith(".py") and not key[2].startswith("compile ")


def short(key):
    return (*key[:2], key[2].split(".")[-1])


if __name__ == "__main__":
    unittest.main()
