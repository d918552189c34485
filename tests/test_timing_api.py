"""What programs call to tell of their phases."""

import asyncio
import copy
import functools
import gc
import inspect
import os
import pickle
import sys
import threading
import unittest
import weakref

import stackweave
from tests.recordings import RecordingCase
from tests.timing_support import FakeClock, told


class TimingCase(RecordingCase):
    def setUp(self):
        super().setUp()
        self.timing = stackweave.Timing()
        self.addCleanup(self.timing.stop)

    def kinds(self):
        return [event[0] for event in told(self.timing)]


class PushAndPop(TimingCase):
    def test_a_place_has_a_name_a_file_and_a_line(self):
        self.timing.push("f", "model.py", 12)
        self.timing.push("g", filename="other.py")
        self.timing.push(line=3, name="h")
        self.assertEqual(self.timing.open_frames(), [("f", "model.py", 12), ("g", "other.py", 0), ("h", "", 3)])
        self.assertEqual(self.timing.current(), stackweave.OpenFrame("h", "", 3))
        frames = [event.frame for event in self.timing.events()]
        self.assertEqual([(f.name, f.filename, f.line) for f in frames][:1], [("f", "model.py", 12)])
        self.assertEqual({frame.kind for frame in frames}, {"label"})

    def test_what_is_equal_is_one_function_whatever_its_objects_are(self):
        for number in (300, 301):
            for _ in range(3):
                name, filename = "".join(["na", "me"]), "".join(["fi", "le"])
                self.timing.push(name, filename, int(str(number)))
                self.timing.pop()
        self.assertEqual(
            {key: row[1] for key, row in self.timing.stats().stats.items()},
            {("file", 300, "name"): 3, ("file", 301, "name"): 3},
        )

    def test_many_places_are_told_apart(self):
        """More than are kept at hand."""
        places = [(f"name {number % 700}", f"file {number % 11}", number % 13) for number in range(5000)]
        for place in places * 2:
            self.timing.push(*place)
            self.timing.pop()
        counted = {(name, file, line): row[1] for (file, line, name), row in self.timing.stats().stats.items()}
        self.assertEqual(counted, {place: 2 * places.count(place) for place in set(places)})

    def test_attributes_are_kept(self):
        self.timing.push("a", "f.py", 1, reason="cache miss", sizes=[1, 2], what=object)
        self.timing.pop(graph=3)
        self.timing.push("b", bytecode_count=30, inline_depth=2)
        self.timing.pop(failed=True, error="no")
        self.timing.push("c", bytecode_count=30, other=None)
        self.timing.pop(failed=False)
        self.assertEqual(
            told(self.timing),
            [
                ("begin-with", "a", {"reason": "cache miss", "sizes": [1, 2], "what": "<class 'object'>"}),
                ("end-with", {"graph": 3}),
                ("begin-code", "b"),
                ("end-failed", {"error": "no"}),
                ("begin-with", "c", {"bytecode_count": 30, "other": None}),
                ("end",),
            ],
        )
        code = [event.values for event in self.timing.events() if event.kind == "begin-code"]
        self.assertEqual(code, [{"bytecode_count": 30.0, "inline_depth": 2.0}])

    def test_numbers_that_do_not_fit_become_details(self):
        for count in (-1, 2**64, 1.5, True, "many"):
            self.timing.push("a", bytecode_count=count)
            self.timing.pop()
        details = [event.details for event in self.timing.events() if event.role == "begin"]
        self.assertEqual(details, [{"bytecode_count": count} for count in (-1, 2**64, 1.5, True, "many")])

    def test_wrong_arguments_are_named(self):
        wrong = [
            (lambda: self.timing.push(), TypeError, r"push\(\) missing 1 required argument: 'name'"),
            (lambda: self.timing.push(3), TypeError, "name must be a str, not int"),
            (lambda: self.timing.push(None), TypeError, "name must be a str, not NoneType"),
            (lambda: self.timing.push(b"f"), TypeError, "name must be a str, not bytes"),
            (lambda: self.timing.push("f", 3), TypeError, "filename must be a str, not int"),
            (lambda: self.timing.push("f", "g", "3"), TypeError, "line must be an int, not str"),
            (lambda: self.timing.push("f", "g", 3.0), TypeError, "line must be an int, not float"),
            (lambda: self.timing.push("f", "g", -1), ValueError, r"line must be from 0 to 2\*\*32 - 1, but is -1"),
            (lambda: self.timing.push("f", "g", 2**32), ValueError, "line must be from 0"),
            (lambda: self.timing.push("f", "g", 2**99), ValueError, "line must be from 0"),
            (lambda: self.timing.push("f", "g", 1, 2), TypeError, "at most 3 positional arguments but 4 were given"),
            (lambda: self.timing.push("f", name="g"), TypeError, "multiple values for argument 'name'"),
            (lambda: self.timing.pop(1), TypeError, r"pop\(\) takes no positional arguments but 1 were given"),
            (lambda: self.timing.pop(failed=1), TypeError, "failed must be a bool, not int"),
            (lambda: self.timing.frame(3), TypeError, "name must be a str, not int"),
            (lambda: self.timing.run(), TypeError, r"run\(\) missing 1 required argument: 'name'"),
            (lambda: stackweave.Timing(clock=3), TypeError, "clock must be a function that gives nanoseconds, not int"),
            (
                lambda: stackweave.Timing(clock=lambda: 1.5),
                TypeError,
                "clock must give an int, of nanoseconds, not float",
            ),
            (lambda: stackweave.Timing(clock=lambda: 2**70), ValueError, "clock must give nanoseconds from"),
        ]
        for call, kind, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(kind, message):
                call()
        self.assertEqual(self.timing.open_frames(), [])
        self.assertEqual(told(self.timing), [])

    def test_a_recording_without_phases_has_none(self):
        with self.recording() as recording:
            with self.assertRaisesRegex(stackweave.StackweaveError, "phases are recorded by a stackweave.Timing"):
                stackweave.Timing.push(recording, "a")
        with self.assertRaises(TypeError):
            stackweave.Timing.push(object(), "a")

    def test_what_the_methods_say_of_themselves(self):
        expected = "(self, /, name, filename='', line=0, **attributes)"
        for method in (stackweave.Timing.push, stackweave.Timing.frame, stackweave.Timing.run):
            self.assertEqual(str(inspect.signature(method)), expected)
        self.assertEqual(str(inspect.signature(stackweave.Timing.pop)), "(self, /, *, failed=False, **attributes)")
        self.assertEqual(stackweave.Timing.push.__name__, "push")


class Frames(TimingCase):
    def test_a_frame_begins_and_ends_with_its_block(self):
        with self.timing.frame("a", "f.py", 1) as phase:
            self.assertIsInstance(phase, stackweave.Phase)
            self.assertEqual(self.timing.current(), ("a", "f.py", 1))
        self.assertIsNone(self.timing.current())
        self.assertEqual(repr(phase), '<stackweave.Phase "a">')
        self.assertEqual(told(self.timing), [("begin", "a"), ("end",)])

    def test_notes_are_told_at_the_end(self):
        with self.timing.frame("a", size=1) as phase:
            phase.note(graph_id=3, result=None)
            phase.note(graph_id=4)
        phase.note(too="late")
        self.assertEqual(
            told(self.timing), [("begin-with", "a", {"size": 1}), ("end-with", {"graph_id": 4, "result": None})]
        )

    def test_runs(self):
        with self.timing.run("compile", "model.py", 3, attempt=1) as run:
            run.note(graphs=2)
        with self.timing.run("compile"):
            pass
        with self.timing.run("compile", bytecode_count=7):
            pass
        self.assertEqual(
            told(self.timing),
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
                with self.timing.frame("a") as phase:
                    phase.note(x=1)
                    raise error
        said = [
            "ValueError: first line",
            "KeyError: 'k'",
            f"{Unspeakable.__qualname__}",
            "KeyboardInterrupt",
            "OSError",
        ]
        self.assertEqual(
            [event for event in told(self.timing) if event[0] != "begin"],
            [("end-failed", {"x": 1, "error": text}) for text in said],
        )

    def test_a_long_message_is_cut(self):
        with self.assertRaises(ValueError):
            with self.timing.frame("a"):
                raise ValueError("é" * 100_000)
        (failed,) = [event[1]["error"] for event in told(self.timing) if event[0] == "end-failed"]
        self.assertEqual(failed, ("ValueError: " + "é" * 1000)[:1000])

    def test_it_can_be_entered_in_itself_and_on_threads(self):
        phase = self.timing.frame("a")
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
        ends = [(event.thread_name, event.details) for event in self.timing.events() if event.role == "end"]
        expected = [(f"thread {number}", {"name": f"thread {number}"}) for number in range(4)]
        self.assertEqual(sorted(end for end in ends if end[1]), expected)
        self.assertEqual(len(ends), 8)
        self.assertFalse(self.timing.problems())

    def test_it_can_be_ended_by_hand(self):
        first, second = self.timing.frame("first"), self.timing.frame("second")
        first.__enter__()
        second.__enter__()
        first.end(failed=True, error="gone")
        second.end()
        second.end()
        self.assertEqual(
            told(self.timing),
            [("begin", "first"), ("begin", "second"), ("end-left-open",), ("end-failed", {"error": "gone"})],
        )
        self.assertEqual(self.timing.problems(), (0, 1, 0, 1))

    def test_it_is_refused_where_it_makes_no_sense(self):
        with self.assertRaisesRegex(TypeError, "a frame decorates functions; int is none"):
            self.timing.frame("a")(3)
        with self.assertRaises(TypeError):
            stackweave.Phase()


class Decorators(TimingCase):
    def test_a_function(self):
        @self.timing.frame("f", x=1)
        def factorial(number):
            "Documented."
            return number * factorial(number - 1) if number else 1

        self.assertEqual(factorial(3), 6)
        self.assertEqual((factorial.__name__, factorial.__doc__), ("factorial", "Documented."))
        self.assertEqual(self.kinds(), ["begin-with"] * 4 + ["end"] * 4)

    def test_a_failure(self):
        @self.timing.frame("f")
        def fails():
            raise LookupError("no")

        with self.assertRaises(LookupError):
            fails()
        self.assertEqual(told(self.timing), [("begin", "f"), ("end-failed", {"error": "LookupError: no"})])

    def test_each_step_of_a_generator(self):
        @self.timing.frame("g")
        def count():
            yield 1
            yield 2

        for _ in count():
            self.assertIsNone(self.timing.current())
        halfway = count()
        next(halfway)
        halfway.close()
        self.assertEqual(self.kinds(), ["begin", "end"] * 5, "its end is no failure, nor is closing it")

    def test_a_failing_generator(self):
        @self.timing.frame("g")
        def count():
            yield 1
            raise OSError("disk")

        with self.assertRaises(OSError):
            list(count())
        self.assertEqual(told(self.timing)[-1], ("end-failed", {"error": "OSError: disk"}))

    def test_coroutines(self):
        @self.timing.frame("c")
        async def work(number):
            await asyncio.sleep(0)
            return number

        @self.timing.frame("a")
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
        self.assertEqual({event.name for event in self.timing.events() if event.role == "begin"}, {"c", "a"})

    def test_methods_and_partials(self):
        class Model:
            @self.timing.frame("method")
            def forward(self, value):
                return value + 1

        self.assertEqual(Model().forward(2), 3)
        self.assertEqual(self.timing.frame("partial")(functools.partial(int, "7"))(), 7)
        self.assertEqual(self.kinds(), ["begin", "end"] * 2)


class Problems(TimingCase):
    def test_all_is_well(self):
        with self.timing.frame("a"):
            self.timing.push("b")
            self.timing.pop()
        problems = self.timing.problems()
        self.assertIsInstance(problems, stackweave.Problems)
        self.assertEqual(problems, (0, 0, 0, 0))
        self.assertFalse(problems)
        self.assertEqual(self.timing.explain_problems(), [])

    def test_a_pop_without_a_push(self):
        def one_too_many():
            self.timing.pop()

        line = one_too_many.__code__.co_firstlineno + 1
        for _ in range(3):
            one_too_many()
        self.timing.pop(failed=True, why="none")
        self.assertEqual(self.timing.problems().unmatched_pops, 4)
        (sentence,) = self.timing.explain_problems()
        self.assertRegex(
            sentence, rf"^4 pops without a push on the same thread: first at .*{__name__.split('.')[-1]}.py"
        )
        self.assertIn(f":{line} (3 times), ", sentence)
        events = list(self.timing.events())
        self.assertEqual({event.kind for event in events}, {"unmatched-pop"})
        self.assertEqual(next(frame.name for frame in events[0].stack if frame.kind == "python"), "one_too_many")

    def test_phases_that_were_left_open(self):
        for _ in range(2):
            with self.timing.frame("around"):
                self.timing.push("forgotten", "f.py", 7)
                self.timing.push("inner")
        self.assertEqual(self.timing.problems(), (0, 4, 0, 0))
        sentence = "4 phases left open when what is around ended: 'forgotten' (f.py:7) (2 times), 'inner' (2 times)"
        self.assertEqual(self.timing.explain_problems(), [sentence])

    def test_phases_that_are_open(self):
        self.timing.push("a")
        thread = threading.Thread(target=self.timing.push, args=("b",))
        thread.start()
        thread.join()
        self.assertEqual(self.timing.problems().still_open + self.timing.problems().left_open, 2)
        self.assertIn("on this thread 'a'", "\n".join(self.timing.explain_problems()))
        self.timing.stop()
        self.assertGreaterEqual(self.timing.problems().still_open, 1)

    def test_a_pop_that_ended_a_frame(self):
        with self.timing.frame("a"):
            self.timing.pop()
        self.assertEqual(self.timing.problems(), (0, 0, 0, 1))
        (sentence,) = self.timing.explain_problems()
        self.assertIn("1 end of frames that were not open any more", sentence)

    def test_a_frame_that_ends_on_another_thread(self):
        phase = self.timing.frame("a").__enter__()
        other = threading.Thread(target=phase.__exit__, args=(None, None, None))
        other.start()
        other.join()
        self.assertEqual(self.timing.problems(), (0, 0, 1, 1))
        self.timing.pop()
        self.assertEqual(self.kinds(), ["begin", "end"])


class Life(RecordingCase):
    def test_it_records_as_soon_as_it_is_made(self):
        timing = stackweave.Timing(self.path)
        self.assertEqual((timing.state, timing.path), ("recording", self.path))
        self.assertIs(timing.start(), timing)
        with timing as same:
            self.assertIs(same, timing)
            timing.push("a")
            timing.pop()
        self.assertEqual((timing.state, timing.stop().events), ("stopped", 2))
        self.assertEqual(repr(timing), f"<stackweave.Timing {self.path!r}, stopped>")
        self.assertEqual(told(stackweave.open(self.path)), [("begin", "a"), ("end",)])

    def test_a_file_is_not_replaced_unasked(self):
        stackweave.Timing(self.path).stop()
        with self.assertRaises(stackweave.StackweaveError):
            stackweave.Timing(self.path)
        stackweave.Timing(self.path, overwrite=True).stop()

    def test_without_a_path(self):
        with stackweave.Timing() as timing:
            self.assertEqual(timing.path, "")
            self.assertEqual(repr(timing), "<stackweave.Timing in a temporary file, recording>")
            timing.push("a")
            timing.pop()
        self.assertEqual(timing.stop().path, "")
        self.assertEqual(told(timing), [("begin", "a"), ("end",)])

    def test_it_can_be_saved_at_any_time(self):
        timing = stackweave.Timing()
        with timing.frame("a"):
            self.assertEqual(timing.save(self.path), self.path)
        self.assertEqual(told(stackweave.open(self.path)), [("begin", "a")])
        with self.assertRaises(FileExistsError):
            timing.save(self.path)
        timing.stop()
        timing.save(self.path, overwrite=True)
        self.assertEqual(told(stackweave.open(self.path)), [("begin", "a"), ("end",)])
        self.assertEqual(stackweave.open(self.path).info()["missing"], [])
        other = stackweave.Timing(os.path.join(self.folder, "named.swv"))
        self.assertEqual(told(stackweave.open(other.save(os.path.join(self.folder, "copy.swv")))), [])
        other.stop()

    def test_it_can_be_read_while_it_records(self):
        for timing in (stackweave.Timing(), stackweave.Timing(self.path)):
            with timing:
                for number in range(1, 4):
                    timing.push("a")
                    timing.pop()
                    self.assertEqual(len(list(timing.events())), 2 * number)
                    self.assertEqual(timing.stats().total_calls, number)
                    self.assertEqual(timing.tree().children[0].calls, number)
                    self.assertEqual(timing.top()[0].calls, number)
                    self.assertEqual(timing.info()["events"], 2 * number)
                exported = timing.export(os.path.join(self.folder, "out.folded"), overwrite=True)
                self.assertTrue(os.path.getsize(exported))
            self.assertEqual(len(list(timing.events())), 6)

    def test_phases_and_runs_can_be_read_while_it_records(self):
        with stackweave.Timing(clock=FakeClock()) as timing:
            with timing.run("compile", "model.py", 3, attempt=1) as run:
                timing.push("f", "model.py", 9, bytecode_count=40, inline_depth=1)
                timing.pop(failed=True, error="no")
                (row,) = timing.runs()
                self.assertEqual(
                    (row.name, row.line, row.unfinished, row.attributes), ("compile", 3, True, {"attempt": 1})
                )
                run.note(graphs=2)
            (row,) = timing.runs()
            self.assertEqual((row.unfinished, row.failed, row.attributes), (False, False, {"attempt": 1, "graphs": 2}))
            phases = {phase.function: phase for phase in timing.phases()}
            self.assertEqual(
                (phases["f"].failed, phases["f"].bytecode_count, phases["f"].inline_depth), (1, 40, (1, 1))
            )
            self.assertIn("model.py:9", timing.phases_text())

    def test_what_comes_after_its_end_is_ignored(self):
        timing = stackweave.Timing(self.path)
        phase = timing.frame("open").__enter__()
        decorated = timing.frame("f")(lambda: 3)
        timing.stop()
        timing.push("a", x=1)
        timing.pop()
        timing.pop(failed=True)
        phase.note(x=1)
        phase.__exit__(None, None, None)
        with timing.frame("b"), timing.run("c"):
            pass
        self.assertEqual(decorated(), 3)
        self.assertEqual(told(timing), [("begin", "open")])
        self.assertEqual(timing.problems(), (0, 0, 1, 0))

    def test_pause(self):
        with stackweave.Timing() as timing:
            timing.push("before")
            timing.pause()
            timing.push("unseen")
            timing.pop()
            with timing.frame("unseen too"):
                timing.push("left open")
            timing.pop()
            timing.resume()
            with timing.frame("after"):
                pass
        self.assertEqual(told(timing), [("begin", "before"), ("end",), ("begin", "after"), ("end",)])
        self.assertFalse(timing.problems())

    def test_several_at_once(self):
        with stackweave.Timing() as one, stackweave.Timing() as two:
            one.push("a")
            two.push("b")
            self.assertEqual((one.current().name, two.current().name), ("a", "b"))
            one.pop()
            self.assertEqual((one.current(), two.current().name), (None, "b"))
            two.pop()
        self.assertEqual((told(one), told(two)), ([("begin", "a"), ("end",)], [("begin", "b"), ("end",)]))

    def test_a_clock_of_its_own_is_the_recordings(self):
        with stackweave.Timing(clock=FakeClock()) as timing:
            timing.push("a")
        (process,) = timing.info()["processes"]
        self.assertEqual(process["clock"]["source"], "monotonic")

    def test_it_is_not_pickled(self):
        with stackweave.Timing() as timing:
            with self.assertRaisesRegex(TypeError, "can't be pickled"):
                pickle.dumps(timing)
            with self.assertRaises(TypeError):
                copy.copy(timing)
            with self.assertRaises(TypeError):
                pickle.dumps(timing.frame("a"))

    def test_nothing_of_it_is_kept(self):
        """Not by a clock that knows it, either."""

        class Program:
            def now(self):
                return 3

        program = Program()
        program.timing = stackweave.Timing(clock=program.now)
        program.timing.push("a")
        program.timing.stop()
        program.phase = program.timing.frame("b")
        gone = weakref.ref(program), weakref.ref(program.timing)
        del program
        gc.collect()
        self.assertEqual([reference() for reference in gone], [None, None])

    def test_strings_are_let_go_at_the_end(self):
        name, filename = "".join(["a ", "name"]), "".join(["a ", "file"])
        before = sys.getrefcount(name), sys.getrefcount(filename)
        with stackweave.Timing() as timing:
            for _ in range(100):
                timing.push(name, filename, 1)
                timing.pop()
            self.assertEqual((sys.getrefcount(name), sys.getrefcount(filename)), (before[0] + 1, before[1] + 1))
        self.assertEqual((sys.getrefcount(name), sys.getrefcount(filename)), before)

    def test_a_string_with_code_of_its_own_is_not_kept(self):
        class Text(str):
            __slots__ = ("__weakref__",)

        with stackweave.Timing() as timing:
            text = Text("a text")
            timing.push(text, text)
            timing.pop()
            gone = weakref.ref(text)
            del text
            self.assertIsNone(gone())

    def test_an_error_of_the_clock_is_the_programs(self):
        told_off = []

        def clock():
            if told_off:
                raise LookupError("no time")
            return 5

        with stackweave.Timing(clock=clock) as timing:
            timing.push("a")
            told_off.append(1)
            for call in (lambda: timing.push("b"), timing.pop, lambda: timing.frame("c").__enter__()):
                self.assertRaises(LookupError, call)
            told_off.clear()
            timing.pop()
        self.assertEqual(told(timing), [("begin", "a"), ("end",)])
        self.assertFalse(timing.problems())

    def test_it_can_be_made_more_of(self):
        class Compiles(stackweave.Timing):
            __slots__ = ("started",)

            def start(self):
                self.started = True
                return super().start()

        with Compiles(clock=FakeClock()) as timing:
            self.assertTrue(timing.started)
            timing.push("a")
        self.assertEqual(told(timing), [("begin", "a")])


if __name__ == "__main__":
    unittest.main()
