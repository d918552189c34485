"""Spans work as decorators, around generators and coroutines, and across pauses."""

import asyncio
import functools
import gc
import inspect
import threading

import stackweave
from tests.recordings import RecordingCase, event_tuples

BEGIN, END = ("begin", "x"), ("end",)


class Decorators(RecordingCase):
    def test_a_decorated_function_is_a_span_and_keeps_its_signature(self):
        recorder = stackweave.Recorder(self.path)

        @recorder.span("x")
        def add(a, b=2):
            """Adds."""
            if a is None:
                raise KeyError("none")
            return a + b

        self.assertEqual((add.__name__, add.__doc__, str(inspect.signature(add))), ("add", "Adds.", "(a, b=2)"))
        self.assertEqual(add(1), 3, "before the recording it is an ordinary function")
        with recorder:
            self.assertEqual(add(1, b=5), 6)
            with self.assertRaises(KeyError):
                add(None)
        self.assertEqual(add(1), 3, "after the recording it is one, too")
        self.assertEqual(event_tuples(recorder.recording.events()), [BEGIN, END, BEGIN, END])

    def test_details_and_stacks_are_recorded_with_each_call(self):
        with self.recording() as recorder:

            @recorder.span("x", stack=True, batch=7)
            def function():
                pass

            function()
            function()
        begins = [event for event in recorder.recording.events() if event.role == "begin"]
        self.assertEqual([event.details for event in begins], [{"batch": 7}] * 2)
        self.assertIn(self._testMethodName, [frame.name for frame in begins[0].stack])

    def test_methods_and_partials_can_be_decorated(self):
        with self.recording() as recorder:

            class Thing:
                @recorder.span("x")
                def method(self, value):
                    return self, value

                @classmethod
                @recorder.span("x")
                def of_class(cls):
                    return cls

            thing = Thing()
            self.assertEqual(thing.method(3), (thing, 3))
            self.assertIs(Thing.of_class(), Thing)
            self.assertEqual(recorder.span("x")(functools.partial(max, 3))(5), 5)
        self.assertEqual(event_tuples(recorder.recording.events()), [BEGIN, END] * 3)

    def test_recursion_nests(self):
        with self.recording() as recorder:

            @recorder.span("x")
            def down(depth):
                return down(depth - 1) if depth else "bottom"

            self.assertEqual(down(3), "bottom")
        self.assertEqual(event_tuples(recorder.recording.events()), [BEGIN] * 4 + [END] * 4)


class Steps(RecordingCase):
    """Generators and coroutines are spans while they run, not while they are suspended."""

    def test_a_generator_is_a_span_for_each_step(self):
        with self.recording() as recorder:

            @recorder.span("x")
            def numbers():
                try:
                    received = yield 1
                except ValueError:
                    received = "thrown"
                yield received
                return "done"

            self.assertTrue(inspect.isgeneratorfunction(numbers))
            generator = numbers()
            recorder.instant("made", stack=False)
            self.assertEqual(next(generator), 1)
            recorder.instant("between", stack=False)
            self.assertEqual(generator.send("sent"), "sent")
            with self.assertRaises(StopIteration) as stopped:
                next(generator)
            self.assertEqual(stopped.exception.value, "done")
            other = numbers()
            next(other)
            self.assertEqual(other.throw(ValueError("x")), "thrown")
            other.close()
        made, between = ("instant", "made"), ("instant", "between")
        expected = [made, BEGIN, END, between, *[BEGIN, END] * 5]
        self.assertEqual(event_tuples(recorder.recording.events()), expected)

    def test_coroutines_that_take_turns_do_not_mix(self):
        with self.recording() as recorder:

            @recorder.span("x")
            async def work(number):
                recorder.instant(f"{number} begins", stack=False)
                await asyncio.sleep(0)
                recorder.instant(f"{number} ends", stack=False)
                return number * 2

            async def main():
                self.assertTrue(inspect.iscoroutinefunction(work))
                return await asyncio.gather(work(1), work(2))

            self.assertEqual(asyncio.run(main()), [2, 4])
        expected = []
        for what in ["1 begins", "2 begins", "1 ends", "2 ends"]:
            expected += [BEGIN, ("instant", what), END]
        self.assertEqual(event_tuples(recorder.recording.events()), expected)

    def test_a_coroutine_that_is_cancelled_ends(self):
        with self.recording() as recorder:

            @recorder.span("x")
            async def work():
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    recorder.instant("cancelled", stack=False)
                    raise

            async def main():
                task = asyncio.create_task(work())
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

            asyncio.run(main())
        self.assertEqual(event_tuples(recorder.recording.events()), [BEGIN, END, BEGIN, ("instant", "cancelled"), END])

    def test_an_asynchronous_generator_is_a_span_for_each_step(self):
        with self.recording() as recorder:

            @recorder.span("x")
            async def numbers():
                try:
                    received = yield 1
                except ValueError:
                    received = "thrown"
                yield received

            async def main():
                self.assertTrue(inspect.isasyncgenfunction(numbers))
                self.assertEqual([number async for number in numbers()], [1, None])
                generator = numbers()
                await generator.__anext__()
                self.assertEqual(await generator.asend("sent"), "sent")
                await generator.aclose()
                generator = numbers()
                await generator.asend(None)
                self.assertEqual(await generator.athrow(ValueError("x")), "thrown")
                with self.assertRaises(KeyError):
                    await generator.athrow(KeyError("y"))

            asyncio.run(main())
        self.assertEqual(event_tuples(recorder.recording.events()), [BEGIN, END] * (3 + 3 + 3))

    def test_a_generator_that_another_thread_closes_raises_nothing(self):
        def numbers():
            with recorder.span("x"):
                yield 1

        def forget():
            held.clear()
            gc.collect()

        with self.recording() as recorder:
            generator = numbers()
            next(generator)
            held = [generator]
            del generator
            thread = threading.Thread(target=forget)
            thread.start()
            thread.join()
        self.assertEqual(sorted(event_tuples(recorder.recording.events())), [BEGIN, END])

    def test_a_generator_that_outlives_the_recording_raises_nothing(self):
        def numbers():
            with recorder.span("x"):
                yield 1

        with self.recording() as recorder:
            generator = numbers()
            next(generator)
        generator.close()
        self.assertEqual(event_tuples(recorder.recording.events()), [BEGIN])


class Pauses(RecordingCase):
    def test_what_happens_in_a_pause_is_left_out(self):
        with self.recording() as recorder:
            recorder.instant("before", stack=False)
            recorder.pause()
            self.assertEqual(recorder.state, "paused")
            recorder.instant("x")
            recorder.counter("x", 1)
            recorder.traceback()
            recorder.allocation(1, 1)
            recorder.free(1)
            recorder.pause()
            recorder.resume()
            recorder.resume()
            self.assertEqual(recorder.state, "recording")
            recorder.instant("after", stack=False)
        self.assertEqual(event_tuples(recorder.recording.events()), [("instant", "before"), ("instant", "after")])

    def test_spans_keep_their_ends_whatever_pauses_come_between(self):
        with self.recording() as recorder:
            with recorder.span("begins before and ends in a pause"):
                with recorder.span("x"):
                    recorder.pause()
                with recorder.span("in the pause"):
                    pass
            with recorder.span("begins in a pause"):
                with recorder.span("also"):
                    recorder.resume()
                with recorder.span("x"):
                    pass
            with recorder.span("x"):
                pass
        self.assertEqual(
            event_tuples(recorder.recording.events()),
            [("begin", "begins before and ends in a pause"), BEGIN, END, END, BEGIN, END, BEGIN, END],
        )

    def test_a_recording_may_end_in_a_pause(self):
        with self.recording() as recorder:
            recorder.begin("x")
            recorder.pause()
        self.assertEqual(event_tuples(recorder.recording.events()), [BEGIN])
