"""Each run of a generator, coroutine or task is a span, and all spans of one belong to the same object."""

import asyncio
import contextlib
import cProfile
import gc
import pstats
import threading

import stackweave
from tests.trace_support import TraceCase


def leaf():
    return None


def steps(count):
    for number in range(count):
        leaf()
        yield number
    leaf()


def objects(spans):
    """Returns the numbers of the objects, in the order in which they were first seen."""
    numbers = {}
    return [numbers.setdefault(span.object, len(numbers)) for span in spans]


async def waits():
    await asyncio.sleep(60)


async def awaits_it():
    await waits()


async def goes_on():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await asyncio.sleep(0)


async def awaits_what_goes_on():
    await goes_on()


async def cancels():
    for function in (awaits_it, awaits_what_goes_on):
        task = asyncio.create_task(function())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Thrown(TraceCase):
    """CPython throws an exception into the innermost of coroutines that await each other, without events for others."""

    def test_what_is_cancelled_is_as_cprofile_has_it_and_nothing_is_repaired(self):
        def main():
            asyncio.run(cancels())

        names = {"waits", "awaits_it", "goes_on", "awaits_what_goes_on", "cancels"}

        def calls(stats):
            return {name: row[1] for (_, _, name), row in stats.items() if name in names}

        profile = cProfile.Profile()
        profile.runcall(main)
        expected = calls(pstats.Stats(profile).stats)
        self.assertEqual((expected["waits"], expected["goes_on"]), (2, 3))
        for mechanism in self.each_complete_mechanism():
            trace = self.trace(main, mechanism=mechanism)
            self.assertEqual(calls(trace.recording.stats().stats), expected)
            self.assertEqual(trace.tracer_stats()["repairs"], 0)


class Identity(TraceCase):
    def test_each_step_is_a_span_of_the_same_object(self):
        def main():
            first, second = steps(2), steps(1)
            for generator in (first, second, first, second, first):
                next(generator, None)

        for mechanism in self.each_mechanism():
            spans = self.replay(self.trace(main, mechanism=mechanism)).called("steps")
            self.assertEqual(objects(spans), [0, 1, 0, 1, 0])
            self.assertEqual([span.kind for span in spans], ["generator", "generator", "resume", "resume", "resume"])
            self.assertEqual([span.ending for span in spans], ["yield", "yield", "yield", "end", "end"])
            self.assertEqual([span.shape for span in spans], [("steps", "leaf")] * 5)

    def test_a_generator_continues_inside_the_code_that_resumes_it(self):
        """If another function or thread resumes a generator, it runs inside that function or thread."""

        def takes_over(generator):
            next(generator)

        def main():
            generator = steps(3)
            next(generator)
            takes_over(generator)
            thread = threading.Thread(target=takes_over, args=(generator,))
            thread.start()
            thread.join()

        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(main, mechanism=mechanism))
            (span,) = replay.called("main")
            self.assertEqual(span.shape[1:3], (("steps", "leaf"), ("takes_over", ("steps", "leaf"))))
            taken = replay.called("takes_over")
            self.assertEqual([each.shape for each in taken], [("takes_over", ("steps", "leaf"))] * 2)
            self.assertEqual(len({each.thread for each in taken}), 2)
            self.assertEqual(set(objects(replay.called("steps"))), {0})

    def test_one_that_began_before_the_trace_goes_on_in_it(self):
        generator = steps(3)
        next(generator)
        for mechanism in self.each_mechanism():
            (span,) = self.replay(self.trace(lambda: next(generator), mechanism=mechanism)).called("steps")
            self.assertEqual((span.kind, span.shape, span.ending), ("resume", ("steps", "leaf"), "yield"))

    def test_one_that_runs_when_the_trace_begins_is_open(self):
        def beginning():
            trace.start()
            leaf()
            yield 1
            leaf()
            yield 2

        for mechanism in self.each_mechanism():
            trace = self.tracing(mechanism=mechanism, gc=False)
            generator = beginning()
            next(generator)
            next(generator)
            trace.stop()
            replay = self.replay(trace)
            spans = replay.called("beginning")
            self.assertEqual([span.kind for span in spans], ["open", "resume"])
            self.assertEqual([[child.name for child in span.children][-1:] for span in spans], [["leaf"], ["leaf"]])

    def test_one_that_stops_the_trace_and_goes_on(self):
        def stopping():
            yield 1
            trace.stop()
            yield 2

        for mechanism in self.each_mechanism():
            trace = self.tracing(mechanism=mechanism, gc=False).start()
            self.assertEqual(list(stopping()), [1, 2])
            self.assertEqual(len(self.replay(trace).called("stopping")), 2)

    def test_delegation_runs_one_inside_the_other(self):
        def outer():
            yield from steps(2)

        def main():
            list(outer())

        for mechanism in self.each_mechanism():
            spans = self.replay(self.trace(main, mechanism=mechanism)).called("outer")
            self.assertEqual([span.shape for span in spans], [("outer", ("steps", "leaf"))] * 3)

    def test_one_that_is_closed_cleans_up_in_a_span(self):
        def guarded():
            try:
                yield 1
            finally:
                leaf()

        def closes():
            generator = guarded()
            next(generator)
            generator.close()

        def forgets():
            generator = guarded()
            next(generator)
            del generator

        def throws():
            generator = guarded()
            next(generator)
            with contextlib.suppress(KeyError):
                generator.throw(KeyError("x"))

        for mechanism in self.each_mechanism():
            for ending in (closes, forgets, throws):
                with self.subTest(ending=ending.__name__):
                    spans = self.replay(self.trace(ending, mechanism=mechanism)).called("guarded")
                    self.assertEqual([span.shape for span in spans], ["guarded", ("guarded", "leaf")])
                    self.assertEqual(set(objects(spans)), {0})


class UserSpans(TraceCase):
    """A span that is open when its generator waits is suspended, and is open again when the generator goes on."""

    def test_across_yields(self):
        def numbers():
            with stackweave.span("in generator"):
                yield 1
                leaf()
                yield 2

        def main():
            for _ in numbers():
                leaf()

        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(main, mechanism=mechanism))
            (span,) = replay.called("main")
            children = [child for child in span.children if child.name in ("numbers", "leaf")]
            self.assertEqual([child.name for child in children], ["numbers", "leaf", "numbers", "leaf", "numbers"])
            for child in children[::2]:
                self.assertIn("in generator", [each.name for each in child.children])
            self.assertIn("leaf", [each.name for each in children[2].walk()])

    def test_across_awaits(self):
        async def work(name):
            with stackweave.span(name):
                for _ in range(3):
                    leaf()
                    await asyncio.sleep(0)

        async def main():
            await asyncio.gather(work("one"), work("two"))

        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(lambda: asyncio.run(main()), mechanism=mechanism))
            for span in replay.called("work"):
                inside = {each.name for each in span.walk()} & {"one", "two"}
                self.assertEqual(len(inside), 1, "never one in the other")
            leaves = [span for name in ("one", "two") for span in replay.called(name)]
            self.assertEqual(sum(child.name == "leaf" for span in leaves for child in span.children), 6)


class Tasks(TraceCase):
    def test_they_have_their_names(self):
        async def work():
            await asyncio.sleep(0)

        async def main():
            await asyncio.gather(*(asyncio.create_task(work(), name=f"worker {number}") for number in range(3)))

        for mechanism in self.each_mechanism():
            trace = self.trace(lambda: asyncio.run(main()), mechanism=mechanism)
            names = {event.name: event.values["object"] for event in trace.recording.events() if event.role == "name"}
            workers = {name: value for name, value in names.items() if name.startswith("worker")}
            self.assertEqual(sorted(workers), ["worker 0", "worker 1", "worker 2"])
            ran = {span.object for span in self.replay(trace).called("work")}
            self.assertEqual(set(workers.values()), ran)

    def test_asynchronous_generators_go_on_as_others_do(self):
        async def numbers():
            for number in range(3):
                await asyncio.sleep(0)
                yield number

        async def main():
            return [number async for number in numbers()]

        for mechanism in self.each_mechanism():
            spans = self.replay(self.trace(lambda: asyncio.run(main()), mechanism=mechanism)).called("numbers")
            self.assertEqual(len(spans), 7)
            self.assertEqual(set(objects(spans)), {0})


class Ends(TraceCase):
    def test_one_that_another_thread_forgets(self):
        def guarded():
            try:
                yield 1
            finally:
                leaf()

        def forget():
            held.clear()
            gc.collect()

        held = []
        for mechanism in self.each_mechanism():
            with self.tracing(mechanism=mechanism) as trace:
                generator = guarded()
                next(generator)
                held.append(generator)
                del generator
                thread = threading.Thread(target=forget)
                thread.start()
                thread.join()
            spans = sorted(self.replay(trace).called("guarded"), key=lambda span: span.begin)
            self.assertEqual([span.shape for span in spans], ["guarded", ("guarded", "leaf")])
            self.assertEqual(len({span.thread for span in spans}), 2)

    def test_one_that_is_alive_at_the_end_of_the_trace(self):
        for mechanism in self.each_mechanism():
            generators = [steps(3) for _ in range(100)]
            trace = self.trace(lambda: [next(generator) for generator in generators], mechanism=mechanism)
            self.assertEqual(len(self.replay(trace).called("steps")), 100)
            self.assertEqual([next(generator) for generator in generators], [1] * 100)
