"""A Timing can be read from its start to its end."""

import copy
import gc
import os
import pickle
import sys
import unittest
import weakref

import stackweave
from tests.recordings import RecordingCase
from tests.support import run_on_oldest_and_newest
from tests.timing_support import FakeClock, event_tuples

setUpModule = run_on_oldest_and_newest


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
        self.assertEqual(event_tuples(stackweave.open(self.path)), [("begin", "a"), ("end",)])

    def test_a_file_is_replaced_only_on_request(self):
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
        self.assertEqual(event_tuples(timing), [("begin", "a"), ("end",)])

    def test_it_can_be_saved_at_any_time(self):
        timing = stackweave.Timing()
        with timing.phase("a"):
            self.assertEqual(timing.save(self.path), self.path)
        self.assertEqual(event_tuples(stackweave.open(self.path)), [("begin", "a")])
        with self.assertRaises(FileExistsError):
            timing.save(self.path)
        timing.stop()
        timing.save(self.path, overwrite=True)
        self.assertEqual(event_tuples(stackweave.open(self.path)), [("begin", "a"), ("end",)])
        self.assertEqual(stackweave.open(self.path).info()["missing"], [])
        other = stackweave.Timing(os.path.join(self.folder, "named.swv"))
        self.assertEqual(event_tuples(stackweave.open(other.save(os.path.join(self.folder, "copy.swv")))), [])
        other.stop()

    def test_save_does_not_replace_the_file_that_is_recorded_to(self):
        with stackweave.Timing(self.path) as timing:
            timing.push("before")
            timing.pop()
            for overwrite in (False, True):
                with self.assertRaisesRegex(OSError, "it is the recording itself: name another file"):
                    timing.save(self.path, overwrite=overwrite)
            timing.push("after")
            timing.pop()
        self.assertEqual({phase.name for phase in stackweave.open(self.path).phases()}, {"before", "after"})

    def test_it_can_be_read_while_it_records(self):
        for timing in (stackweave.Timing(), stackweave.Timing(self.path)):
            with timing:
                for number in range(1, 4):
                    timing.push("a")
                    timing.pop()
                    self.assertEqual(len(list(timing.recording.events())), 2 * number)
                    self.assertEqual(timing.recording.stats().total_calls, number)
                    self.assertEqual(timing.recording.tree().children[0].calls, number)
                    self.assertEqual(timing.recording.top()[0].calls, number)
                    self.assertEqual(timing.recording.info()["events"], 2 * number)
                exported = timing.recording.export(os.path.join(self.folder, "out.folded"), overwrite=True)
                self.assertTrue(os.path.getsize(exported))
            self.assertEqual(len(list(timing.recording.events())), 6)

    def test_phases_and_runs_can_be_read_while_it_records(self):
        with stackweave.Timing(clock=FakeClock()) as timing:
            with timing.run("compile", "model.py", 3, attempt=1) as run:
                timing.push("f", "model.py", 9, bytecode_count=40, inline_depth=1)
                timing.pop(failed=True, error="no")
                (row,) = timing.recording.runs()
                self.assertEqual(
                    (row.name, row.lineno, row.unfinished, row.attributes), ("compile", 3, True, {"attempt": 1})
                )
                run.note(graphs=2)
            (row,) = timing.recording.runs()
            self.assertEqual((row.unfinished, row.failed, row.attributes), (False, False, {"attempt": 1, "graphs": 2}))
            phases = {phase.name: phase for phase in timing.recording.phases()}
            self.assertEqual(
                (phases["f"].failed, phases["f"].bytecode_count, phases["f"].inline_depth), (1, 40, (1, 1))
            )
            self.assertIn("model.py:9", timing.recording.phases_text())

    def test_phases_after_its_end_are_ignored(self):
        timing = stackweave.Timing(self.path)
        phase = timing.phase("open").__enter__()
        decorated = timing.phase("f")(lambda: 3)
        timing.stop()
        timing.push("a", x=1)
        timing.pop()
        timing.pop(failed=True)
        phase.note(x=1)
        phase.__exit__(None, None, None)
        with timing.phase("b"), timing.run("c"):
            pass
        self.assertEqual(decorated(), 3)
        self.assertEqual(event_tuples(timing), [("begin", "open")])
        self.assertEqual(timing.problems(), (0, 0, 1, 0))

    def test_pause(self):
        with stackweave.Timing() as timing:
            timing.push("before")
            timing.pause()
            timing.push("unseen")
            timing.pop()
            with timing.phase("unseen too"):
                timing.push("left open")
            timing.pop()
            timing.resume()
            with timing.phase("after"):
                pass
        self.assertEqual(event_tuples(timing), [("begin", "before"), ("end",), ("begin", "after"), ("end",)])
        self.assertFalse(timing.problems())

    def test_several_at_once(self):
        with stackweave.Timing() as one, stackweave.Timing() as two:
            one.push("a")
            two.push("b")
            self.assertEqual((one.current().name, two.current().name), ("a", "b"))
            one.pop()
            self.assertEqual((one.current(), two.current().name), (None, "b"))
            two.pop()
        self.assertEqual(
            (event_tuples(one), event_tuples(two)), ([("begin", "a"), ("end",)], [("begin", "b"), ("end",)])
        )

    def test_a_given_clock_is_the_clock_of_the_recording(self):
        with stackweave.Timing(clock=FakeClock()) as timing:
            timing.push("a")
        (process,) = timing.recording.info()["processes"]
        self.assertEqual(process["clock"]["source"], "monotonic")

    def test_it_is_not_pickled(self):
        with stackweave.Timing() as timing:
            with self.assertRaisesRegex(TypeError, "can't be pickled"):
                pickle.dumps(timing)
            with self.assertRaises(TypeError):
                copy.copy(timing)
            with self.assertRaises(TypeError):
                pickle.dumps(timing.phase("a"))

    def test_it_is_released(self):
        """Even if its clock refers to it."""

        class Program:
            def now(self):
                return 3

        program = Program()
        program.timing = stackweave.Timing(clock=program.now)
        program.timing.push("a")
        program.timing.stop()
        program.phase = program.timing.phase("b")
        gone = weakref.ref(program), weakref.ref(program.timing)
        del program
        gc.collect()
        self.assertEqual([reference() for reference in gone], [None, None])

    def test_strings_are_released_at_the_end(self):
        name, filename = "".join(["a ", "name"]), "".join(["a ", "file"])
        before = sys.getrefcount(name), sys.getrefcount(filename)
        with stackweave.Timing() as timing:
            for _ in range(100):
                timing.push(name, filename, 1)
                timing.pop()
            self.assertEqual((sys.getrefcount(name), sys.getrefcount(filename)), (before[0] + 1, before[1] + 1))
        self.assertEqual((sys.getrefcount(name), sys.getrefcount(filename)), before)

    def test_a_string_of_a_subclass_is_not_kept(self):
        class Text(str):
            __slots__ = ("__weakref__",)

        with stackweave.Timing() as timing:
            text = Text("a text")
            timing.push(text, text)
            timing.pop()
            gone = weakref.ref(text)
            del text
            self.assertIsNone(gone())

    def test_an_error_of_the_clock_reaches_the_program(self):
        failing = []

        def clock():
            if failing:
                raise LookupError("no time")
            return 5

        with stackweave.Timing(clock=clock) as timing:
            timing.push("a")
            failing.append(1)
            for call in (lambda: timing.push("b"), timing.pop, lambda: timing.phase("c").__enter__()):
                self.assertRaises(LookupError, call)
            failing.clear()
            timing.pop()
        self.assertEqual(event_tuples(timing), [("begin", "a"), ("end",)])
        self.assertFalse(timing.problems())

    def test_it_can_be_subclassed(self):
        class Compiles(stackweave.Timing):
            __slots__ = ("started",)

            def start(self):
                self.started = True
                return super().start()

        with Compiles(clock=FakeClock()) as timing:
            self.assertTrue(timing.started)
            timing.push("a")
        self.assertEqual(event_tuples(timing), [("begin", "a")])


if __name__ == "__main__":
    unittest.main()
