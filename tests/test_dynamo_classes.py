"""The classes of the Dynamo profiler have the fields and methods of torch's own, and the same results."""

import collections
import contextlib
import copy
import cProfile
import dataclasses
import gc
import inspect
import io
import itertools
import pickle
import pstats
import random
import threading
import typing
import unittest
import weakref

from stackweave.torch import dynamo
from stackweave.torch.dynamo import DynamoProfilerState, FunctionTraceTiming, ProfilerStackEntry
from tests.dynamo_support import Caller, in_ns, table, torch_profiler
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

TORCHS = torch_profiler()
FULL = ("f", "/a/b.py", 3, 2_500_000, 1_250_000, 40, 2, "g", "c.py", 7, False, (("g", "c.py", 7),))


class NotedTiming(FunctionTraceTiming):
    pass


class NotedState(DynamoProfilerState):
    def __init__(self):
        super().__init__()
        self.note = 1


class Fields(unittest.TestCase):
    def test_a_timing_has_the_properties_of_torchs(self):
        timing = FunctionTraceTiming(*FULL)
        self.assertEqual((timing.trace_time_ns, timing.trace_time_ms), (2_500_000, 2.5))
        self.assertEqual((timing.cumtime_ms, timing.tottime_ms), (2.5, 1.25))
        self.assertEqual((timing.func_key, timing.caller_key), (("/a/b.py", 3, "f"), ("c.py", 7, "g")))
        text = "FunctionTraceTiming(f at /a/b.py:3, cumtime=2.50ms, tottime=1.25ms, bytecode=40, depth=2)"
        self.assertEqual(repr(timing), text)
        bare = FunctionTraceTiming("f", "a.py", 1, 2, 1, 10, 0)
        rest = ("caller_func_name", "caller_filename", "caller_firstlineno", "is_primitive_call", "call_stack")
        self.assertEqual([getattr(bare, name) for name in rest], [None, None, None, True, ()])
        self.assertIsNone(bare.caller_key)
        self.assertEqual(FunctionTraceTiming("f", "a", 1, 2, 1, 10, 0, "g").caller_key, ("", 0, "g"))

    def test_they_are_dataclasses(self):
        timing = FunctionTraceTiming(*FULL)
        self.assertTrue(dataclasses.is_dataclass(timing))
        self.assertEqual(dataclasses.astuple(timing), FULL)
        self.assertEqual(FunctionTraceTiming(**dataclasses.asdict(timing)), timing)
        self.assertEqual(dataclasses.replace(timing, cumtime_ns=4).cumtime_ms, 4e-6)
        self.assertEqual([field.name for field in dataclasses.fields(timing)], list(FunctionTraceTiming.__match_args__))
        self.assertEqual(typing.get_type_hints(FunctionTraceTiming)["caller_firstlineno"], int | None)
        entry = ProfilerStackEntry("f", "a.py", 1, 5, 6)
        text = (
            "ProfilerStackEntry(func_name='f', filename='a.py', firstlineno=1, start_time_ns=5, child_time_ns=6, "
            "is_primitive_call=True)"
        )
        self.assertEqual(repr(entry), text)
        self.assertEqual(ProfilerStackEntry(**dataclasses.asdict(entry)), entry)

    def test_equality_compares_all_fields_and_the_class(self):
        class Other(FunctionTraceTiming):
            pass

        timing = FunctionTraceTiming(*FULL)
        self.assertEqual(timing, FunctionTraceTiming(*FULL))
        self.assertNotEqual(timing, Other(*FULL))
        self.assertNotEqual(timing, FULL)
        for field in dataclasses.fields(timing):
            other = copy.copy(timing)
            value = getattr(other, field.name)
            setattr(other, field.name, value + value if isinstance(value, (str, tuple)) else not value)
            self.assertNotEqual(timing, other, field.name)
        with self.assertRaisesRegex(TypeError, "unhashable"):
            hash(timing)

    def test_copies_and_pickles_are_equal_and_keep_the_attributes_of_subclasses(self):
        noted = NotedTiming(*FULL)
        noted.note = [1]
        entry = ProfilerStackEntry("f\udc80", "a.py", 1, 5, 6, False)
        for each in (noted, FunctionTraceTiming(*FULL), entry):
            ways = [copy.copy, copy.deepcopy]
            ways += [lambda of, p=p: pickle.loads(pickle.dumps(of, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
            for way in ways:
                other = way(each)
                self.assertEqual((other, type(other)), (each, type(each)))
                self.assertEqual(getattr(other, "note", None), getattr(each, "note", None))

    def test_a_state_can_be_pickled_in_the_middle(self):
        for kind in (DynamoProfilerState, NotedState):
            caller = Caller(dynamo)
            caller.state = kind()
            caller.tree("f", "g")
            caller.begin("h")
            other = pickle.loads(pickle.dumps(caller.state))
            self.assertEqual(
                (type(other), other.timings, other.stack), (kind, caller.state.timings, caller.state.stack)
            )
            self.assertEqual(getattr(other, "note", None), getattr(caller.state, "note", None))
            other.push("h", "a.py", 1, 0)
            self.assertFalse(other.stack[-1].is_primitive_call)
            self.assertEqual(len(caller.state.stack), 1)
            self.assertIs(copy.copy(caller.state).stack, caller.state.stack)

    def test_a_collection_may_begin_at_any_time(self):
        before = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for kind in (FunctionTraceTiming, NotedTiming):
                timings = [kind(*FULL) for _ in range(300)]
            for kind in (DynamoProfilerState, NotedState):
                for _ in range(100):
                    state = kind()
                    state.push("f", "a.py", 1, 0)
                    state.get_call_stack()
                    state.pop()
        finally:
            gc.set_threshold(*before)
        self.assertEqual(timings[0], timings[-1])

    def test_values_of_wrong_types_are_refused(self):
        for wrong in [(1, *FULL[1:]), (*FULL[:2], "3", *FULL[3:]), (*FULL[:3], 2**70, *FULL[4:])]:
            with self.assertRaises((TypeError, OverflowError)):
                FunctionTraceTiming(*wrong)
        with self.assertRaises(TypeError):
            DynamoProfilerState().push("f", None, 1, 2)

    def test_a_subclass_may_take_arguments(self):
        class Named(DynamoProfilerState):
            def __init__(self, name):
                super().__init__()
                self.name = name

        self.assertEqual((Named("a").name, Named(name="b").stack), ("a", []))
        for arguments, keywords in [((1,), {}), ((), {"name": 1})]:
            with self.assertRaisesRegex(TypeError, "takes no arguments"):
                DynamoProfilerState(*arguments, **keywords)

    def test_cycles_are_collected(self):
        class State(DynamoProfilerState):
            pass

        state = State()
        state.push("f", "a.py", 1, 0)
        state.itself = state
        state.timings.append(state)
        gone = weakref.ref(state)
        del state
        gc.collect()
        self.assertIsNone(gone())


class Stack(unittest.TestCase):
    def test_recursion_is_seen_at_any_distance(self):
        state = DynamoProfilerState()
        for name, line in [("f", 1), ("g", 1), ("f", 2), ("f", 1), ("g", 1)]:
            state.push(name, "a.py", line, 0)
        self.assertEqual([entry.is_primitive_call for entry in state.stack], [True, True, True, False, False])
        for _ in range(4):
            state.pop()
        state.push("g", "a.py", 1, 0)
        self.assertTrue(state.stack[-1].is_primitive_call)
        self.assertEqual(state.get_current_caller(), ("g", "a.py", 1))
        self.assertEqual(state.get_call_stack(), (("f", "a.py", 1), ("g", "a.py", 1)))

    def test_an_empty_stack_is_no_error(self):
        state = DynamoProfilerState()
        self.assertEqual((state.pop(), state.get_current_caller(), state.get_call_stack()), (None, None, ()))
        state.add_child_time(5)
        self.assertIs(state.get_timings(), state.timings)

    def test_a_push_compares_no_other_entry(self):
        class Counted(str):
            compared = 0
            __hash__ = str.__hash__

            def __eq__(self, other):
                Counted.compared += 1
                return str.__eq__(self, other)

        state, costs = DynamoProfilerState(), []
        for depth in range(3000):
            Counted.compared = 0
            state.push(Counted(f"f{depth % 100}"), Counted("a.py"), 1, 0)
            state.get_current_caller()
            costs.append(Counted.compared)
        self.assertEqual(sum(entry.is_primitive_call for entry in state.stack), 100)
        self.assertLess(max(costs), 30)

    def test_calls_from_one_place_share_one_stack(self):
        caller = Caller(dynamo)
        caller.tree("f", *(("g", "h") for _ in range(10)))
        stacks = collections.defaultdict(set)
        for timing in caller.state.timings:
            stacks[timing.func_name].add(id(timing.call_stack))
        self.assertEqual(len(stacks["g"]), 1)

    def test_the_lists_may_be_changed_by_others(self):
        state = DynamoProfilerState()
        for name in "fgh":
            state.push(name, "a.py", 1, 0)
        entry = state.stack.pop()
        state.push("h", "a.py", 1, 0)
        self.assertTrue(state.stack[-1].is_primitive_call)
        state.stack[0].func_name = "k"
        self.assertEqual(state.get_call_stack()[0], ("k", "a.py", 1))
        state.push("f", "a.py", 1, 0)
        state.push("k", "a.py", 1, 0)
        self.assertEqual([each.is_primitive_call for each in state.stack[-2:]], [True, False])
        state.stack = [entry]
        self.assertEqual(state.get_call_stack(), (("h", "a.py", 1),))
        self.assertIs(state.pop(), entry)
        state.stack.append(collections.namedtuple("Incomplete", "func_name")("f"))
        with self.assertRaises(AttributeError):
            state.push("f", "a.py", 1, 0)
        state.stack.clear()
        state.push("f", "a.py", 1, 0)
        self.assertTrue(state.stack[-1].is_primitive_call)

    def test_threads_may_share_a_state(self):
        state, errors = DynamoProfilerState(), []

        def use():
            try:
                for _ in range(2000):
                    state.push("f", "a.py", 1, 0)
                    state.get_call_stack()
                    state.pop()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, state.stack), ([], []))


class Statistics(unittest.TestCase):
    def test_a_tree_with_times_by_hand(self):
        times = iter([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100])
        caller = Caller(dynamo, clock=times.__next__)
        # main 0-100: f 10-90: f 20-80: f 30-70: g 40-50, and 60-60 between; then g 90-95.
        caller.begin("main")
        for name in "fff":
            caller.begin(name)
        caller.tree("g")
        for _ in range(3):
            caller.end()
        caller.tree("g")
        caller.end()
        main, f, g = ((1, 1), (1, 3), (2, 2))
        # Times: main 0, f 10, f 20, f 30, g 40 to 50, ends at 60, 70, 80, g 90 to 95, end 100.
        expected = {
            "g": (*g, 15, 15, {"f": (1, 1, 10, 10), "main": (1, 1, 5, 5)}),
            "f": (*f, 60, 70, {"f": (2, 1, 40, 50), "main": (1, 1, 20, 70)}),
            "main": (*main, 25, 100, {}),
        }
        self.assertEqual(table(caller.state.generate_pstats()), expected)
        edge = caller.state.caller_edges["a.py", 1, "f"]["a.py", 1, "f"]
        self.assertEqual(in_ns(edge), (2, 1, 40, 50, 80), "torch's way counts 30 of these twice")
        stats = caller.state.generate_pstats()
        self.assertEqual((stats.total_calls, stats.prim_calls, round(stats.total_tt * 1e9)), (6, 4, 100))

    def test_mutual_recursion(self):
        caller = Caller(dynamo)
        # f 0-7: g 1-6: f 2-5: g 3-4.
        caller.tree("f", ("g", ("f", "g")))
        expected = {
            "g": (1, 2, 3, 5, {"f": (2, 1, 3, 5)}),
            "f": (1, 2, 4, 7, {"g": (1, 1, 2, 3)}),
        }
        self.assertEqual(table(caller.state.generate_pstats()), expected)

    def test_a_failed_call_is_a_caller_without_times(self):
        caller = Caller(dynamo)
        caller.begin("main")
        caller.begin("fails")
        caller.tree("f")
        caller.end(failed=True)
        caller.end()
        found = table(caller.state.generate_pstats())
        self.assertEqual(found["fails"], (0, 0, 0, 0, {}))
        self.assertEqual(found["f"], (1, 1, 1, 1, {"fails": (1, 1, 1, 1)}))
        self.assertEqual(found["main"], (1, 1, 5, 5, {}))

    def test_random_programs_agree_with_cprofile(self):
        for seed in range(20):
            with self.subTest(seed=seed):
                self.agree_with_cprofile(random.Random(seed))

    def agree_with_cprofile(self, chance):
        def grown(depth):
            calls = chance.randrange(4) if depth < 7 else 0
            return (chance.choice("abc"), *(grown(depth + 1) for _ in range(calls)))

        tree = ("a", *(grown(0) for _ in range(4)))
        caller = Caller(dynamo)
        caller.tree(*tree)

        def a(calls):
            for name, *inside in calls:
                functions[name](inside)

        def b(calls):
            for name, *inside in calls:
                functions[name](inside)

        def c(calls):
            for name, *inside in calls:
                functions[name](inside)

        functions = {"a": a, "b": b, "c": c}
        profile = cProfile.Profile(itertools.count().__next__, 1e-9, builtins=False)
        profile.enable()
        a(tree[1:])
        profile.disable()
        profile.create_stats()
        expected = table(pstats.Stats(profile))
        self.assertEqual(
            table(caller.state.generate_pstats()), {name: expected[name] for name in "abc" if name in expected}
        )

    def test_nothing_was_timed(self):
        state = DynamoProfilerState()
        self.assertEqual((state.generate_pstats().stats, state.caller_edges), ({}, {}))

    def test_it_works_while_cprofile_runs(self):
        caller = Caller(dynamo)
        caller.tree("f")
        profile = cProfile.Profile()
        profile.enable()
        try:
            stats = caller.state.generate_pstats()
        finally:
            profile.disable()
        self.assertEqual(table(stats), {"f": (1, 1, 1, 1, {})})

    def test_names_that_are_no_utf8_stay_apart(self):
        caller = Caller(dynamo)
        caller.tree("f\udc80", "f\udc81", "f\udc80")
        self.assertEqual(set(table(caller.state.generate_pstats())), set(map("f{}".format, "\udc80\udc81")))

    def test_a_stats_object_prints_and_adds_up(self):
        caller = Caller(dynamo)
        caller.tree("f", "g", "g")
        stats = caller.state.generate_pstats()
        stats.add(caller.state.generate_pstats())
        stats.stream = io.StringIO()
        stats.sort_stats("cumulative").print_stats().print_callers().print_callees()
        self.assertEqual(stats.stats["a.py", 1, "g"][:2], (4, 4))
        self.assertIn("6 function calls", stats.stream.getvalue())


@unittest.skipIf(TORCHS is None, "torch is not installed, or has no Dynamo profiler")
class AgreementWithTorch(unittest.TestCase):
    def test_names_signatures_and_defaults(self):
        for name in ("FunctionTraceTiming", "ProfilerStackEntry"):
            ours, of_torch = getattr(dynamo, name), getattr(TORCHS, name)
            self.assertEqual(list(inspect.signature(ours).parameters), list(inspect.signature(of_torch).parameters))
            described = [
                [(f.name, f.type, f.default, f.init, f.compare) for f in dataclasses.fields(c)]
                for c in (ours, of_torch)
            ]
            self.assertEqual(*described)
            self.assertEqual(ours.__match_args__, of_torch.__match_args__)
        of_torch = {name for name in vars(TORCHS.DynamoProfilerState) if not name.startswith("_")}
        self.assertLessEqual(of_torch, set(dir(DynamoProfilerState)))
        for name in of_torch:
            ours, original = (getattr(each, name) for each in (DynamoProfilerState, TORCHS.DynamoProfilerState))
            shown = [[(p.name, p.default) for p in inspect.signature(f).parameters.values()] for f in (ours, original)]
            self.assertEqual(*shown, name)

    def test_random_sequences(self):
        for seed in range(30):
            with self.subTest(seed=seed):
                self.agree(random.Random(seed))

    def agree(self, chance):
        # All times are long and different, so that the rounding of sums does not make rows equal.
        times = list(itertools.accumulate(chance.randrange(1, 10**8) for _ in range(1000)))
        callers = [Caller(classes, iter(times).__next__) for classes in (dynamo, TORCHS)]
        for _ in range(chance.randrange(400)):
            depth = len(callers[0].state.stack)
            begins = chance.random() < (0.6 if depth < 12 else 0.3)
            arguments = (chance.choice("abcd"), chance.choice(["/x/a.py", "b.py"]), chance.randrange(3))
            fails = chance.random() < 0.1
            for caller in callers:
                if begins:
                    caller.begin(*arguments)
                elif depth:
                    caller.end(fails)
        ours, of_torch = (caller.state for caller in callers)
        for what in ("timings", "stack"):
            found, expected = (
                [dataclasses.asdict(each) for each in getattr(state, what)] for state in (ours, of_torch)
            )
            self.assertEqual(found, expected)
        self.assertEqual(list(map(repr, ours.timings)), list(map(repr, of_torch.timings)))
        self.assertEqual(ours.get_call_stack(), of_torch.get_call_stack())
        self.agree_in_statistics(ours, of_torch)
        self.agree_in_statistics(ours, of_torch, mixed=True)

    def agree_in_statistics(self, ours, of_torch, mixed=False):
        if mixed:
            ours = DynamoProfilerState()
            ours.timings = of_torch.timings
        stats, printed = [], []
        for state in (ours, of_torch):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                stats.append(state.generate_pstats(print_raw=True))
            printed.append(out.getvalue())
        self.assertEqual(*printed)
        found, expected = (each.stats for each in stats)
        self.assertEqual(list(found), list(expected))
        both = ours.caller_edges
        for key, row in expected.items():
            self.assertEqual(in_ns(found[key][:4]), in_ns(row[:4]))
            self.assertEqual(list(found[key][4]), list(row[4]))
            for caller, edge in row[4].items():
                calls, primitive, own, total, total_of_all = in_ns(both[key][caller])
                self.assertEqual(in_ns(found[key][4][caller]), (calls, primitive, own, total))
                # torch's primitive calls are those of the function; its time is that of all calls.
                self.assertEqual((calls, own, total_of_all), (in_ns(edge)[0], *in_ns(edge)[2:]))
                self.assertLessEqual((edge[1], total), (primitive, total_of_all))
        for name in ("total_calls", "prim_calls"):
            self.assertEqual(*(getattr(each, name) for each in stats))


if __name__ == "__main__":
    unittest.main()
