"""Trees of phases have the right times to the nanosecond, and the figures of cProfile for the same calls."""

import cProfile
import os
import pstats
import random
import threading
import unittest

import stackweave
from tests.recordings import RecordingCase
from tests.support import run_on_oldest_and_newest
from tests.timing_support import FakeClock, Timed, callers, exact_table, shape, table

setUpModule = run_on_oldest_and_newest


class HandComputed(RecordingCase):
    def setUp(self):
        super().setUp()
        self.timed = Timed()
        self.timing, self.clock = self.timed.timing, self.timed.clock
        self.addCleanup(self.timing.stop)

    def test_a_phase_in_a_phase(self):
        # outer: 5 + [inner 7] + 11 = 23, of which 16 are self time
        self.timed.spend("outer", 5, lambda: self.timed.spend("inner", 7), after=11)
        self.assertEqual(table(self.timing.recording.stats()), {"outer": (1, 1, 16, 23), "inner": (1, 1, 7, 7)})
        self.assertEqual(callers(self.timing.recording.stats()), {("outer", "inner"): (1, 1, 7, 7)})
        self.assertEqual(shape(self.timing.recording.tree()), {"outer": (23, 1, {"inner": (7, 1, {})})})

    def test_recursion(self):
        def spend(depth):
            inner = [lambda: spend(depth - 1)] if depth else []
            self.timed.spend("f", 10**depth, *inner, after=depth)

        # f(3) = 1000 + f(2) + 3, f(2) = 100 + f(1) + 2, f(1) = 10 + f(0) + 1, f(0) = 1
        spend(3)
        self.assertEqual(table(self.timing.recording.stats()), {"f": (4, 1, 1117, 1117)})
        # f calls itself 3 times. cProfile counts the outermost of these calls as primitive, though it is a recursion.
        self.assertEqual(callers(self.timing.recording.stats()), {("f", "f"): (3, 1, 114, 114)})

    def test_mutual_recursion(self):
        def ping(left):
            self.timed.spend("ping", 2, *([lambda: pong(left - 1)] if left else []), after=1)

        def pong(left):
            self.timed.spend("pong", 20, *([lambda: ping(left - 1)] if left else []), after=10)

        ping(3)  # ping pong ping pong: 3 + 30 + 3 + 30
        self.assertEqual(table(self.timing.recording.stats()), {"ping": (2, 1, 6, 66), "pong": (2, 1, 60, 63)})
        self.assertEqual(
            shape(self.timing.recording.tree()),
            {"ping": (66, 1, {"pong": (63, 1, {"ping": (33, 1, {"pong": (30, 1, {})})})})},
        )

    def test_the_same_phase_from_two_others(self):
        for name, before in (("a", 1), ("b", 100), ("a", 10_000)):
            self.timed.spend(name, before, lambda: self.timed.spend("shared", 1_000_000))
        self.assertEqual(
            table(self.timing.recording.stats()),
            {"a": (2, 2, 10_001, 2_010_001), "b": (1, 1, 100, 1_000_100), "shared": (3, 3, 3_000_000, 3_000_000)},
        )
        self.assertEqual(
            callers(self.timing.recording.stats()),
            {("a", "shared"): (2, 2, 2_000_000, 2_000_000), ("b", "shared"): (1, 1, 1_000_000, 1_000_000)},
        )

    def test_failure_ends_at_its_own_time(self):
        with self.assertRaises(KeyError):
            with self.timing.phase("outer"):
                self.clock.pass_(3)
                with self.timing.phase("fails"):
                    self.clock.pass_(40)
                    raise KeyError("gone")
        self.timing.push("later")
        self.clock.pass_(500)
        self.timing.pop(failed=True)
        rows = {"outer": (1, 1, 3, 43), "fails": (1, 1, 40, 40), "later": (1, 1, 500, 500)}
        self.assertEqual(table(self.timing.recording.stats()), rows)
        failed = [event.details for event in self.timing.recording.events() if event.kind == "end-failed"]
        self.assertEqual(failed, [{"error": "KeyError: 'gone'"}, {"error": "KeyError: 'gone'"}, {}])

    def test_an_open_phase_ends_with_the_phase_around_it(self):
        with self.timing.phase("outer"):
            self.timing.push("left")
            self.clock.pass_(5)
            self.timing.push("left too")
            self.clock.pass_(6)
        self.clock.pass_(1000)
        self.timed.spend("next", 1)
        rows = {"outer": (1, 1, 0, 11), "left": (1, 1, 5, 11), "left too": (1, 1, 6, 6), "next": (1, 1, 1, 1)}
        self.assertEqual(table(self.timing.recording.stats()), rows)

    def test_threads_have_stacks_of_their_own(self):
        barrier = threading.Barrier(2)

        def work(name, before):
            barrier.wait(60)
            self.timing.push("shared")
            barrier.wait(60)  # both are open now
            self.timed.spend(name, before)
            self.clock.pass_(1)
            barrier.wait(60)
            self.timing.pop()

        threads = [threading.Thread(target=work, args=pair) for pair in (("one", 10), ("two", 200))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(
            table(self.timing.recording.stats()),
            {"shared": (2, 2, 2, 212), "one": (1, 1, 10, 10), "two": (1, 1, 200, 200)},
        )
        self.assertFalse(self.timing.problems())

    def test_the_file_of_cprofile_has_the_same_numbers(self):
        self.timed.spend("outer", 5, lambda: self.timed.spend("inner", 7), after=11)
        path = self.timing.recording.export(os.path.join(self.folder, "out.prof"))
        self.assertEqual(exact_table(pstats.Stats(path)), exact_table(self.timing.recording.stats()))

    def test_long_and_short_times_are_kept_exactly(self):
        hour = 3600 * 10**9
        self.timed.spend("long", hour, lambda: self.timed.spend("short", 1), after=1)
        self.timing.stop()
        long = {child.name: child for child in self.timing.recording.tree().children}["long"]
        self.assertEqual(round(long.total * 1e9), hour + 2)
        self.assertEqual(round(long.children[0].total * 1e9), 1)

    def test_a_clock_that_goes_back_makes_no_negative_times(self):
        self.timing.push("a")
        self.clock.pass_(-50)
        self.timing.pop()
        self.assertEqual(table(self.timing.recording.stats()), {"a": (1, 1, 0, 0)})


FUNCTION = """
def f{number}(plan, now, functions):
    for step in plan:
        if step.__class__ is int:
            now[0] += step
        else:
            functions[step[0]](step[1], now, functions)
"""


def functions():
    """Returns Python functions that carry out a plan, each on a different line of one of two files."""
    names = {}
    for number in range(6):
        text = "\n" * (10 * number) + FUNCTION.format(number=number)
        exec(compile(text, f"file{number % 2}.py", "exec"), names)
    return [names[f"f{number}"] for number in range(6)]


def plan_of(generator, depth=0):
    """Returns what a call does: nanoseconds that pass, and calls as the number of a function and its plan."""
    steps = [generator.choice((0, 1, 7, 1000, 10**6)), generator.randrange(100)]
    for _ in range(generator.randrange(4) if depth < 6 else 0):
        steps.append((generator.randrange(6), plan_of(generator, depth + 1)))
        steps.append(generator.randrange(1000))
    return steps


def record_phases(timing, plan, now, known):
    """Records the same calls as phases."""
    for step in plan:
        if isinstance(step, int):
            now[0] += step
            continue
        code = known[step[0]].__code__
        timing.push(code.co_name, code.co_filename, code.co_firstlineno)
        record_phases(timing, step[1], now, known)
        timing.pop()


class AgreesWithCProfile(unittest.TestCase):
    """An outside oracle: the same nested calls, seen by cProfile with the same clock."""

    maxDiff = None

    def test_random_calls(self):
        known = functions()
        for seed in range(30):
            with self.subTest(seed=seed):
                generator = random.Random(seed)
                plan = [(generator.randrange(6), plan_of(generator)) for _ in range(3)]
                now = [0]
                profiler = cProfile.Profile(lambda now=now: now[0], 1e-9, True, False)
                profiler.enable()
                for number, inner in plan:
                    known[number](inner, now, known)
                profiler.disable()
                now = [5]
                with stackweave.Timing(clock=lambda now=now: now[0]) as timing:
                    record_phases(timing, plan, now, known)
                expected = exact_table(pstats.Stats(profiler))
                # From 3.14 on cProfile sees its own end.
                expected.pop(("~", 0, "<method 'disable' of '_lsprof.Profiler' objects>"), None)
                self.assertEqual(exact_table(timing.recording.stats()), expected)


class Replays(unittest.TestCase):
    def test_times_of_long_ago(self):
        clock = FakeClock(start=-(2**62))
        with stackweave.Timing(clock=clock) as timing:
            timing.push("a")
            clock.pass_(17)
            timing.pop()
        self.assertEqual(table(timing.recording.stats()), {"a": (1, 1, 17, 17)})
        self.assertEqual([round(event.time * 1e9) for event in timing.recording.events()], [0, 17])


if __name__ == "__main__":
    unittest.main()
