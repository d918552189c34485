"""Filters by name, depth, duration and number leave out events at the source, and change no others."""

import threading
import time

import stackweave
from tests.trace_support import Counts, TraceCase, load


def leaf():
    return None


def branch(depth):
    leaf()
    return branch(depth - 1) if depth else leaf()


def slow(depth=0):
    leaf()
    if depth:
        slow(depth - 1)
    else:
        time.sleep(0.03)
    leaf()


def generator():
    leaf()
    yield branch(1)
    leaf()


def many(calls):
    for _ in range(calls):
        leaf()
    branch(3)


class ByName(TraceCase):
    def called(self, main, **options):
        """Returns how often each function of this file was called, with each mechanism."""
        answers = []
        for mechanism in self.each_mechanism():
            trace = self.trace(main, mechanism=mechanism, **options)
            self.replay(trace)
            answers.append(
                {name: calls for name, (calls, _) in Counts.from_stats(trace.recording.stats()).of(__file__)[0].items()}
            )
        self.assertEqual(answers[0], answers[1])
        return {name: calls for name, calls in answers[0].items() if name in ("leaf", "branch", "slow", "generator")}

    def test_functions(self):
        self.assertEqual(self.called(lambda: branch(2), exclude="function:leaf"), {"branch": 3})
        self.assertEqual(self.called(lambda: branch(2), include="function:leaf"), {"leaf": 4})
        self.assertEqual(self.called(lambda: list(generator()), exclude=["function:b*"]), {"leaf": 5, "generator": 2})
        self.assertEqual(
            self.called(lambda: list(generator()), exclude=["function:generator"]), {"leaf": 5, "branch": 2}
        )

    def test_files_and_modules(self):
        def main():
            branch(1)
            load("recursion").main()

        self.assertEqual(self.called(main, exclude="file:*/trace_programs/*"), {"branch": 2, "leaf": 3})
        self.assertEqual(self.called(main, include="file:*/trace_programs/*"), {})
        self.assertEqual(self.called(main, exclude=f"module:{__name__}"), {})

    def test_filtered_calls_are_counted_and_calls_of_the_package_are_not(self):
        def main():
            branch(1)
            stackweave.span("named")
            stackweave.instant("named", stack=False)

        for exclude, left_out in [((), 0), ("function:branch", 1)]:
            self.assertEqual(self.trace(main, exclude=exclude).tracer_stats()["left_out"], left_out)

    def test_children_of_excluded_functions_are_kept(self):
        """The children are under the nearest function that was not left out, and their caller is the one that was."""

        def main():
            branch(0)

        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(main, mechanism=mechanism, exclude="function:branch"))
            (span,) = replay.called("main")
            self.assertEqual(span.shape, ("main", "leaf", "leaf"))
            self.assertEqual({child.caller.name for child in span.children}, {"branch"})

    def test_what_one_trace_leaves_out_is_in_the_next_trace(self):
        for mechanism in self.each_mechanism():
            for _ in range(3):
                left_out = self.trace(lambda: branch(2), mechanism=mechanism, exclude="function:branch")
                self.assertEqual(self.replay(left_out).called("branch"), [])
                whole = self.trace(lambda: branch(2), mechanism=mechanism)
                self.assertEqual(len(self.replay(whole).called("branch")), 3)


class ByDepth(TraceCase):
    def test_nothing_deeper_is_recorded(self):
        """In a separate thread, three functions of the standard library are outside."""
        for mechanism in self.each_mechanism():

            def main():
                thread = threading.Thread(target=branch, args=(10,))
                thread.start()
                thread.join()

            replay = self.replay(self.trace(main, mechanism=mechanism, max_depth=6))
            (root,) = (
                roots[0] for roots in replay.roots.values() if "branch" in [span.name for span in roots[0].walk()]
            )
            depths = {}
            measure(root, 1, depths)
            self.assertEqual(max(depths), 6)
            self.assertEqual(depths[6], ["leaf", "branch"] if depths[4] == ["branch"] else depths[6])
            self.assertLess(len(replay.called("branch")), 5)


def measure(span, depth, depths):
    depths.setdefault(depth, []).append(span.name)
    for child in span.children:
        measure(child, depth + 1, depths)


class ByDuration(TraceCase):
    def test_only_long_calls_are_recorded_with_their_callers(self):
        def main():
            branch(5)
            slow(2)
            branch(5)

        for mechanism in self.each_mechanism():
            trace = self.trace(main, mechanism=mechanism, min_duration="15ms")
            replay = self.replay(trace)
            (span,) = replay.called("main")
            self.assertEqual(span.shape, ("main", ("slow", ("slow", "slow"))))
            for each in span.walk():
                self.assertGreaterEqual(each.end - each.begin, 15_000_000)
            self.assertEqual(trace.tracer_stats()["hidden"], 2 * (6 + 7) + 6)
            self.assertEqual(trace.tracer_stats()["calls"], len(list(span.walk())))

    def test_generators_are_measured_by_the_step(self):
        def steps():
            leaf()
            yield 1
            time.sleep(0.02)
            yield 2

        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(lambda: list(steps()), mechanism=mechanism, min_duration="10ms"))
            self.assertEqual([span.kind for span in replay.called("steps")], ["resume"])

    def test_what_is_open_at_the_end_is_long_enough_or_not(self):
        for mechanism in self.each_mechanism():
            with self.tracing(mechanism=mechanism, gc=False, min_duration=3600.0) as trace:
                branch(3)
                slow()
            replay = self.replay(trace)
            self.assertEqual((replay.called("branch"), replay.called("slow")), ([], []))


class ByNumber(TraceCase):
    def test_hot_tiny_functions_are_demoted(self):
        for mechanism in self.each_mechanism():
            trace = self.trace(lambda: many(20_000), mechanism=mechanism, demote=(1000, 0.001))
            replay = self.replay(trace)
            self.assertEqual(len(replay.called("leaf")), 1000)
            self.assertEqual(len(replay.called("branch")), 4)
            (demoted,) = (event for event in trace.recording.events() if event.kind == "demoted")
            self.assertTrue(demoted.name.endswith("leaf"))
            self.assertEqual(demoted.values["calls"], 1000)
            (function,) = trace.tracer_stats()["demoted"]
            self.assertTrue(function["name"].endswith("leaf"), function)

    def test_slow_functions_are_not(self):
        for mechanism in self.each_mechanism():
            trace = self.trace(lambda: many(3000), mechanism=mechanism, demote=(1000, 0.0))
            self.assertEqual(len(self.replay(trace).called("leaf")), 3005)

    def test_a_bound_on_events_counts_the_rest(self):
        for mechanism in self.each_mechanism():
            trace = self.trace(lambda: many(5000), mechanism=mechanism, max_events=1000)
            replay = self.replay(trace)
            begun = sum(1 for event in trace.recording.events() if event.role in ("begin", "resume"))
            self.assertEqual(begun, 1000)
            self.assertEqual(trace.tracer_stats()["dropped"], 2 + 5000 + 9 - 1000)
            self.assertEqual(len(replay.called("branch")), 0)
