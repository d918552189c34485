"""Spans nest as the calls did, hold each other's times, and say where they were called."""

import contextlib
import gc
import sys
import time

import stackweave
from tests.trace_support import MECHANISMS, TraceCase, load

PROGRAMS = ("asynchronous", "exceptions", "generators", "mixed", "recursion", "threads")


def leaf():
    return None


def branch(depth):
    leaf()
    if depth:
        branch(depth - 1)
    leaf()


def down(depth, then):
    return down(depth - 1, then) if depth else then()


class Nesting(TraceCase):
    def test_a_span_lies_in_the_one_around_it(self):
        for name in PROGRAMS:
            for mechanism in self.each_mechanism():
                with self.subTest(program=name):
                    trace = self.trace(load(name).main, mechanism=mechanism)
                    replay = self.replay(trace)
                    self.assertGreater(sum(1 for _ in replay.walk()), 20)
                    for span in replay.walk():
                        self.assert_inside(span)

    def assert_inside(self, span):
        self.assertLessEqual(span.begin, span.end)
        before = span.begin
        for child in span.children:
            self.assertLessEqual(before, child.begin, f"{child.name} in {span.name}")
            self.assertLessEqual(child.end, span.end, f"{child.name} in {span.name}")
            before = child.end

    def test_the_shape_is_that_of_the_calls(self):
        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(lambda: branch(2), mechanism=mechanism))
            inner = ("branch", "leaf", "leaf")
            (outermost,) = (
                span for span in replay.called("branch") if span.shape[2] != "leaf" and span.shape[2][2] == inner
            )
            self.assertEqual(outermost.shape, ("branch", "leaf", ("branch", "leaf", inner, "leaf"), "leaf"))

    def test_mechanisms_record_the_same(self):
        for name in ("exceptions", "classes", "callbacks", "mixed", "recursion"):
            with self.subTest(name):
                main = load(name).main
                main()
                shapes = [self.shapes_of(main, mechanism) for mechanism in MECHANISMS]
                self.assertEqual(shapes[0], shapes[1])

    def shapes_of(self, main, mechanism):
        replay = self.replay(self.trace(main, mechanism=mechanism))
        (span,) = (span for span in replay.called("main") if span.key[0] == main.__code__.co_filename)
        return span.shape

    def test_an_exception_ends_what_it_leaves_before_it_is_handled(self):
        def fall(depth):
            if depth == 0:
                raise KeyError("x")
            fall(depth - 1)

        def main():
            try:
                fall(3)
            except KeyError:
                leaf()

        for mechanism in self.each_mechanism():
            (span,) = self.replay(self.trace(main, mechanism=mechanism)).called("main")
            self.assertEqual(span.shape, ("main", ("fall", ("fall", ("fall", "fall"))), "leaf"))
            self.assertEqual({each.ending for each in span.walk() if each.name == "fall"}, {"raise"})

    def test_frames_that_were_there_before_are_open(self):
        """All of them are open, and a frame that starts a trace stays open until it returns."""

        def start_and_return():
            trace.start()
            leaf()

        def main():
            down(300, start_and_return)
            leaf()
            trace.stop()

        for mechanism in self.each_mechanism():
            trace = self.tracing(mechanism=mechanism, gc=False)
            main()
            replay = self.replay(trace)
            opened = replay.called("down")
            self.assertEqual([span.kind for span in opened], ["open"] * 301)
            self.assertEqual(len({span.begin for span in opened}), 1, "all of them begin with the trace")
            (span,) = replay.called("main")
            self.assertEqual(
                [child.name for child in span.children if child.name in ("down", "leaf")], ["down", "leaf"]
            )
            stats = {key[2].rpartition(".")[2]: row[:2] for key, row in trace.recording.stats().stats.items()}
            self.assertEqual((stats["down"], stats["main"]), ((0, 0), (0, 0)), "they were not called during the trace")
            self.assertEqual(stats["leaf"], (2, 2))

    def test_the_line_of_the_call_is_kept(self):
        def main():
            leaf()
            (
                leaf(),
                leaf(),
            )

        first = main.__code__.co_firstlineno
        for mechanism in self.each_mechanism():
            spans = self.replay(self.trace(main, mechanism=mechanism)).called("leaf")
            self.assertEqual([span.caller.lineno - first for span in spans], [1, 3, 4])
            self.assertEqual({span.caller.name for span in spans}, {"main"})

    def test_functions_that_are_gone_have_their_names(self):
        """Their code objects are freed, and others use the same memory."""

        def main():
            for number in range(2000):
                namespace = {}
                exec(f"def function_{number}(): return leaf()", {"leaf": leaf}, namespace)
                namespace.popitem()[1]()

        for mechanism in self.each_mechanism():
            spans = self.replay(self.trace(main, mechanism=mechanism)).walk()
            made = [span for span in spans if span.name.startswith("function_")]
            expected = [(f"function_{number}", "leaf") for number in range(2000)]
            wrong = [(span.shape, right) for span, right in zip(made, expected) if span.shape != right]
            self.assertEqual((len(made), wrong[:3]), (2000, []))

    def test_the_sum_is_the_time_that_passed(self):
        began = time.perf_counter()
        trace = self.trace(load("mixed").main)
        passed = time.perf_counter() - began
        replay = self.replay(trace)
        for roots in replay.roots.values():
            self.assertLess(sum(root.end - root.begin for root in roots) / 1e9, passed)
        (main,) = (
            row for row in trace.recording.top() if row.name == "main" and row.filename == load("mixed").__file__
        )
        (span,) = (span for span in replay.called("main") if span.key[0] == main.filename)
        self.assertAlmostEqual(main.total, (span.end - span.begin) / 1e9, places=7)
        inside = sum(child.end - child.begin for child in span.children) / 1e9
        self.assertAlmostEqual(main.self, main.total - inside, places=7)


class Between(TraceCase):
    """Other things happen while calls are traced."""

    def test_user_spans_and_calls_nest_in_each_other(self):
        def main(trace):
            with trace.span("outer"):
                leaf()
                with stackweave.span("inner"):
                    leaf()
                    stackweave.instant("now", stack=False)
                leaf()

        stackweave.span("imports what it needs")
        stackweave.instant("so does this")
        for mechanism in self.each_mechanism():
            with self.tracing(mechanism=mechanism, gc=False) as trace:
                main(trace)
            replay = self.replay(trace)
            (span,) = replay.called("main")
            shown = ("main", ("outer", "leaf", ("inner", "leaf"), "leaf"))
            self.assertEqual(without(span.shape, "__enter__", "__exit__", "span", "instant"), shown)
            (stack,) = (stack for name, stack in replay.instants if name == "now")
            self.assertEqual([name for name in stack if name in ("outer", "inner")], ["outer", "inner"])

    def test_a_user_span_that_an_exception_leaves_is_over(self):
        def fails(trace):
            with trace.span("failing"):
                raise KeyError("x")

        with self.tracing(gc=False) as trace:
            with contextlib.suppress(KeyError):
                fails(trace)
            leaf()
        replay = self.replay(trace)
        (span,) = replay.called("fails")
        self.assertEqual([child.name for child in span.children], ["failing"])

    def test_collections_are_spans(self):
        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(self):
                leaf()

        def main():
            Cycle()
            gc.collect()
            gc.collect(0)

        gc.collect()
        with self.tracing() as trace:
            main()
        replay = self.replay(trace)
        begun = [event for event in trace.recording.events() if event.kind == "gc"]
        ended = [event for event in trace.recording.events() if event.kind == "gc-end"]
        self.assertEqual([event.values["generation"] for event in begun][-2:], [2, 0])
        self.assertGreaterEqual(ended[-2].values["collected"], 1)
        spans = [span for span in replay.walk() if span.kind == "gc"]
        self.assertEqual([child.name for child in spans[-2].children if child.name == "__del__"], ["__del__"])

    def test_a_collection_while_a_trace_stops_comes_before_its_end(self):
        def set_threshold(threshold):
            gc.set_threshold(threshold)

        before, collections = gc.get_threshold(), 0
        # The allocation that starts a collection depends on their number since the last one.
        for threshold in range(1, 10):
            try:
                trace = self.tracing().start()
                # This call makes the trace follow the thread.
                set_threshold(threshold)
                trace.stop()
            finally:
                gc.set_threshold(*before)
            # Time does not go back on any thread.
            self.replay(trace)
            collections += sum(event.kind == "gc" for event in trace.recording.events())
        if sys.version_info < (3, 12):
            self.assertGreater(collections, 0, "later versions collect between instructions only")

    def test_a_collection_between_a_call_and_its_begin_opens_nothing(self):
        def listed(number):
            return [number]

        def main():
            return [listed(number) for number in range(20_000)]

        before = gc.get_threshold()
        gc.set_threshold(50, 5, 5)
        self.addCleanup(gc.set_threshold, *before)
        with self.tracing() as trace:
            main()
        replay = self.replay(trace)
        self.assertGreater(len([span for span in replay.walk() if span.kind == "gc"]), 100)
        self.assertEqual([span.name for span in replay.walk() if span.kind == "open" and span.name == "listed"], [])
        self.assertEqual(trace.tracer_stats()["repairs"], 0)

    def test_a_pause_leaves_out_what_happens_in_it(self):
        def before():
            trace.pause()

        def paused():
            leaf()

        def after():
            trace.resume()
            leaf()

        def main():
            before()
            paused()
            after()
            branch(1)

        for mechanism in self.each_mechanism():
            with self.tracing(mechanism=mechanism, gc=False) as trace:
                main()
            replay = self.replay(trace)
            self.assertEqual(replay.called("paused"), [])
            self.assertEqual(len(replay.called("leaf")), 5)
            self.assertEqual([len(span.children) > 0 for span in replay.called("branch")][-1], True)
            stats = {key[2].rpartition(".")[2]: row[1] for key, row in trace.recording.stats().stats.items()}
            self.assertEqual((stats["main"], stats["branch"], stats["after"]), (1, 2, 0))


def without(shape, *names):
    """Returns a shape without irrelevant calls. Their inner calls stay."""
    if isinstance(shape, str):
        return shape
    inside = [
        without(child, *names) for child in shape[1:] if (child if isinstance(child, str) else child[0]) not in names
    ]
    return (shape[0], *inside) if inside else shape[0]
