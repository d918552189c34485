"""A trace can be started and stopped many times while a program runs."""

import contextlib
import gc
import itertools
import os
import random
import sys
import threading
import time

import stackweave
from tests.trace_support import MECHANISMS, TraceCase, load, reference

#: The number of starts and stops of the longest test. The full test has 10000; `make test` has less time.
STARTS = int(os.environ.get("STACKWEAVE_TRACE_STARTS", "300"))


def leaf():
    return None


def branch(depth):
    leaf()
    return branch(depth - 1) if depth else leaf()


def steps():
    while True:
        leaf()
        yield branch(2)


async def awaits():
    branch(1)


def raises():
    try:
        branch(1)
        raise KeyError("x")
    finally:
        leaf()


class Cycle:
    def __init__(self):
        self.me = self

    def __del__(self):
        leaf()


class Loud:
    def __del__(self):
        raise RuntimeError("in __del__")


def everything():
    """Makes calls of each kind. A trace may start or end anywhere in it."""
    generator = steps()
    while True:
        branch(3)
        yield
        next(generator)
        yield
        with contextlib.suppress(StopIteration):
            awaits().send(None)
        yield
        with contextlib.suppress(KeyError):
            raises()
        Cycle()
        list(map(branch, [2, 1]))
        yield


class StartsAndStops(TraceCase):
    def test_again_and_again(self):
        work = everything()
        mechanisms = itertools.cycle(MECHANISMS)
        for number in range(STARTS):
            trace = self.tracing(mechanism=next(mechanisms), c_calls=False)
            trace.start()
            next(work)
            trace.stop()
            if number % 50 == 0:
                self.replay(trace)
                self.assertGreater(len(list(trace.recording.events())), 2)
        del work
        gc.collect()

    def test_at_any_depth_and_stopped_at_any_other(self):
        def down(depth, action):
            leaf()
            if depth:
                down(depth - 1, action)
            else:
                action()
            leaf()

        for mechanism in self.each_mechanism():
            for start, stop in itertools.product((0, 3, 7), repeat=2):
                trace = self.tracing(mechanism=mechanism, gc=False)
                down(start, trace.start)
                down(stop, trace.stop)
                replay = self.replay(trace)
                self.assertEqual(sum(span.kind == "open" for span in replay.called("down")), start + 1)
                self.assertEqual(sum(span.kind == "call" for span in replay.called("down")), stop + 1)

    def test_inside_a_collection(self):
        def collect(action):
            def callback(phase, _info):
                if phase == "start":
                    gc.callbacks.remove(callback)
                    action()

            gc.callbacks.append(callback)
            gc.collect()

        for mechanism in self.each_mechanism():
            trace = self.tracing(mechanism=mechanism)
            collect(trace.start)
            Cycle()
            collect(trace.stop)
            self.replay(trace)

    def test_inside_what_is_called_at_the_end_of_an_object(self):
        class Ending:
            def __init__(self, action):
                self.action = action

            def __del__(self):
                self.action()

        for mechanism in self.each_mechanism():
            trace = self.tracing(mechanism=mechanism)
            Ending(trace.start)
            branch(2)
            Ending(trace.stop)
            self.assertEqual(len(self.replay(trace).called("branch")), 3)

    def test_by_threads_while_others_work(self):
        """A second start fails with an exception, and does not affect the trace that is on."""
        finished, refused, done = threading.Event(), [], []

        def work():
            for _ in everything():
                if finished.is_set():
                    return

        def trace(number):
            for turn in range(STARTS // 10):
                path = os.path.join(self.folder, f"{number}.swv")
                trace = stackweave.trace(path, overwrite=True, mechanism=MECHANISMS[turn % 2 and number % 2])
                try:
                    trace.start()
                except stackweave.StackweaveError as error:
                    refused.append(str(error))
                    continue
                branch(2)
                trace.stop()
                done.append(trace)

        workers = [threading.Thread(target=work) for _ in range(4)]
        tracers = [threading.Thread(target=trace, args=(number,)) for number in range(3)]
        for thread in workers + tracers:
            thread.start()
        for thread in tracers:
            thread.join()
        finished.set()
        for thread in workers:
            thread.join()
        self.assertGreater(len(done), 3)
        self.replay(done[-1])

    def test_pauses_everywhere(self):
        for mechanism in self.each_mechanism():
            work = everything()
            with self.tracing(mechanism=mechanism) as trace:
                for _ in range(100):
                    next(work)
                    trace.pause()
                    next(work)
                    trace.resume()
            replay = self.replay(trace)
            self.assertGreater(len(replay.called("branch")), 100)

    def test_exceptions_at_the_end_of_objects(self):
        seen = []
        hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: seen.append(unraisable.exc_type)
        try:
            for mechanism in self.each_mechanism():
                trace = self.trace(lambda: [Loud() and None for _ in range(10)], mechanism=mechanism)
                self.assertEqual(len(self.replay(trace).called("__del__")), 10)
        finally:
            sys.unraisablehook = hook
        self.assertEqual(seen, [RuntimeError] * 10 * len(MECHANISMS))


class Anywhere(TraceCase):
    """A trace is started, paused, resumed and stopped at any point of a program."""

    def setUp(self):
        super().setUp()
        self.program = load("mixed")
        actions = self.program.ACTIONS
        self.addCleanup(setattr, self.program, "ACTIONS", actions)
        self.toggle = lambda: None

        def toggles(_chance, _depth):
            self.toggle()

        self.program.ACTIONS = (*actions, toggles)

    def test_only_possible_calls_are_recorded(self):
        possible = set()
        for seed in range(6):
            self.program.main(seed * 1000, 500)
            possible |= reference(lambda seed=seed: self.program.main(seed * 1000, 500)).counts.edges.keys()
        mine = self.program.__file__
        for mechanism in self.each_mechanism():
            for seed in range(6):
                traces = list(self.toggled(seed, mechanism))
                self.assertGreater(len(traces), 1)
                for trace in traces:
                    for span in self.replay(trace).walk():
                        edges = {
                            (span.key, child.key) for child in span.children if child.key[0] == mine == span.key[0]
                        }
                        self.assertEqual(edges - possible, set())

    def toggled(self, seed, mechanism):
        """Returns the traces of a run in which random actions start, pause, resume and stop them."""
        chance, traces = random.Random(seed), []

        def toggle():
            if not traces or traces[-1].state == "stopped":
                path = os.path.join(self.folder, f"{len(traces)}.swv")
                traces.append(stackweave.trace(path, mechanism=mechanism, overwrite=True).start())
            elif traces[-1].state == "paused":
                traces[-1].resume()
            else:
                chance.choice((traces[-1].pause, traces[-1].stop))()

        self.toggle = toggle
        self.program.main(seed * 1000, 500)
        self.toggle = lambda: None
        for trace in traces:
            trace.stop()
        return traces


class Order(TraceCase):
    def test_time_never_goes_back_across_threads_that_hand_over(self):
        """One thread runs at a time, so their spans do not overlap."""
        turns = [threading.Semaphore(0) for _ in range(3)]

        def run(number):
            for _ in range(20):
                turns[number].acquire()
                alone()
                turns[(number + 1) % 3].release()

        def alone():
            time.perf_counter()

        for mechanism in self.each_mechanism():
            with self.tracing(mechanism=mechanism) as trace:
                threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
                for thread in threads:
                    thread.start()
                turns[0].release()
                for thread in threads:
                    thread.join()
                turns[0].acquire()
            spans = sorted(self.replay(trace).called("alone"), key=lambda span: span.begin)
            self.assertEqual(len(spans), 60)
            order = list(dict.fromkeys(span.thread for span in spans))
            self.assertEqual([order.index(span.thread) for span in spans], [0, 1, 2] * 20)
            for first, second in itertools.pairwise(spans):
                self.assertLessEqual(first.end, second.begin)
