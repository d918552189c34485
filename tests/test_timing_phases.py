"""Phases work in with statements, and as decorators."""

import asyncio
import functools
import threading
import unittest

import stackweave
from tests.timing_support import TimingCase, event_tuples


class Frames(TimingCase):
    def test_a_phase_begins_and_ends_with_its_block(self):
        with self.timing.phase("a", "f.py", 1) as phase:
            self.assertIsInstance(phase, stackweave.Phase)
            self.assertEqual(self.timing.current(), ("a", "f.py", 1))
        self.assertIsNone(self.timing.current())
        self.assertEqual(repr(phase), '<stackweave.Phase "a">')
        self.assertEqual(event_tuples(self.timing), [("begin", "a"), ("end",)])

    def test_notes_are_recorded_at_the_end(self):
        with self.timing.phase("a", size=1) as phase:
            phase.note(graph_id=3, result=None)
            phase.note(graph_id=4)
        phase.note(too="late")
        self.assertEqual(
            event_tuples(self.timing), [("begin-with", "a", {"size": 1}), ("end-with", {"graph_id": 4, "result": None})]
        )

    def test_runs(self):
        with self.timing.run("compile", "model.py", 3, attempt=1) as run:
            run.note(graphs=2)
        with self.timing.run("compile"):
            pass
        with self.timing.run("compile", bytecode_count=7):
            pass
        self.assertEqual(
            event_tuples(self.timing),
            [
                ("begin-run", "compile", {"attempt": 1}),
                ("end-with", {"graphs": 2}),
                ("begin-run", "compile"),
                ("end",),
                ("begin-run", "compile", {"bytecode_count": 7, "inline_depth": 0}),
                ("end",),
            ],
        )

    def test_an_exception_makes_it_fail(self):
        class Unspeakable(Exception):
            def __str__(self):
                raise RuntimeError

        for error in (ValueError("first line\nsecond"), KeyError("k"), Unspeakable(), KeyboardInterrupt(), OSError()):
            with self.assertRaises(type(error)):
                with self.timing.phase("a") as phase:
                    phase.note(x=1)
                    raise error
        errors = [
            "ValueError: first line",
            "KeyError: 'k'",
            f"{Unspeakable.__qualname__}",
            "KeyboardInterrupt",
            "OSError",
        ]
        self.assertEqual(
            [event for event in event_tuples(self.timing) if event[0] != "begin"],
            [("end-failed", {"x": 1, "error": text}) for text in errors],
        )

    def test_a_long_message_is_cut(self):
        with self.assertRaises(ValueError):
            with self.timing.phase("a"):
                raise ValueError("é" * 100_000)
        (failed,) = [event[1]["error"] for event in event_tuples(self.timing) if event[0] == "end-failed"]
        self.assertEqual(failed, ("ValueError: " + "é" * 1000)[:1000])

    def test_it_can_be_entered_in_itself_and_on_threads(self):
        phase = self.timing.phase("a")
        barrier = threading.Barrier(4)

        def work():
            with phase, phase:
                phase.note(name=threading.current_thread().name)
                barrier.wait(60)

        threads = [threading.Thread(target=work, name=f"thread {number}") for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ends = [(event.thread_name, event.details) for event in self.timing.recording.events() if event.role == "end"]
        expected = [(f"thread {number}", {"name": f"thread {number}"}) for number in range(4)]
        self.assertEqual(sorted(end for end in ends if end[1]), expected)
        self.assertEqual(len(ends), 8)
        self.assertFalse(self.timing.problems())

    def test_it_can_be_ended_by_hand(self):
        first, second = self.timing.phase("first"), self.timing.phase("second")
        first.__enter__()
        second.__enter__()
        first.end(failed=True, error="gone")
        second.end()
        second.end()
        self.assertEqual(
            event_tuples(self.timing),
            [("begin", "first"), ("begin", "second"), ("end-left-open",), ("end-failed", {"error": "gone"})],
        )
        self.assertEqual(self.timing.problems(), (0, 1, 0, 1))

    def test_wrong_uses_are_refused(self):
        with self.assertRaisesRegex(TypeError, "a phase decorates functions; int is not a function"):
            self.timing.phase("a")(3)
        with self.assertRaises(TypeError):
            stackweave.Phase()


class Decorators(TimingCase):
    def test_a_function(self):
        @self.timing.phase("f", x=1)
        def factorial(number):
            "Returns the factorial."
            return number * factorial(number - 1) if number else 1

        self.assertEqual(factorial(3), 6)
        self.assertEqual((factorial.__name__, factorial.__doc__), ("factorial", "Returns the factorial."))
        self.assertEqual(self.kinds(), ["begin-with"] * 4 + ["end"] * 4)

    def test_a_failure(self):
        @self.timing.phase("f")
        def fails():
            raise LookupError("no")

        with self.assertRaises(LookupError):
            fails()
        self.assertEqual(event_tuples(self.timing), [("begin", "f"), ("end-failed", {"error": "LookupError: no"})])

    def test_each_step_of_a_generator(self):
        @self.timing.phase("g")
        def count():
            yield 1
            yield 2

        for _ in count():
            self.assertIsNone(self.timing.current())
        halfway = count()
        next(halfway)
        halfway.close()
        self.assertEqual(self.kinds(), ["begin", "end"] * 5, "neither its end nor closing it is a failure")

    def test_a_failing_generator(self):
        @self.timing.phase("g")
        def count():
            yield 1
            raise OSError("disk")

        with self.assertRaises(OSError):
            list(count())
        self.assertEqual(event_tuples(self.timing)[-1], ("end-failed", {"error": "OSError: disk"}))

    def test_coroutines(self):
        @self.timing.phase("c")
        async def work(number):
            await asyncio.sleep(0)
            return number

        @self.timing.phase("a")
        async def steps():
            yield 1
            await asyncio.sleep(0)
            yield 2

        async def main():
            self.assertEqual(await asyncio.gather(work(1), work(2)), [1, 2])
            self.assertEqual([step async for step in steps()], [1, 2])

        asyncio.run(main())
        self.assertFalse(self.timing.problems())
        self.assertEqual(set(self.kinds()), {"begin", "end"})
        self.assertEqual({event.name for event in self.timing.recording.events() if event.role == "begin"}, {"c", "a"})

    def test_methods_and_partials(self):
        class Model:
            @self.timing.phase("method")
            def forward(self, value):
                return value + 1

        self.assertEqual(Model().forward(2), 3)
        self.assertEqual(self.timing.phase("partial")(functools.partial(int, "7"))(), 7)
        self.assertEqual(self.kinds(), ["begin", "end"] * 2)


if __name__ == "__main__":
    unittest.main()
