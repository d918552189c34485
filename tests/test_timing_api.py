"""Programs record their phases with these methods."""

import inspect
import threading
import unittest

import stackweave
from tests.support import run_on_oldest_and_newest
from tests.timing_support import TimingCase, event_tuples

setUpModule = run_on_oldest_and_newest


class PushAndPop(TimingCase):
    def test_a_location_has_a_name_a_file_and_a_line(self):
        self.timing.push("f", "model.py", 12)
        self.timing.push("g", filename="other.py")
        self.timing.push(lineno=3, name="h")
        self.assertEqual(self.timing.open_phases(), [("f", "model.py", 12), ("g", "other.py", 0), ("h", "", 3)])
        self.assertEqual(self.timing.current(), stackweave.OpenPhase("h", "", 3))
        frames = [event.frame for event in self.timing.recording.events()]
        self.assertEqual([(f.name, f.filename, f.lineno) for f in frames][:1], [("f", "model.py", 12)])
        self.assertEqual({frame.kind for frame in frames}, {"span"})

    def test_equal_locations_are_one_function_though_their_objects_differ(self):
        for number in (300, 301):
            for _ in range(3):
                name, filename = "".join(["na", "me"]), "".join(["fi", "le"])
                self.timing.push(name, filename, int(str(number)))
                self.timing.pop()
        self.assertEqual(
            {key: row[1] for key, row in self.timing.recording.stats().stats.items()},
            {("file", 300, "name"): 3, ("file", 301, "name"): 3},
        )

    def test_many_locations_are_different_functions(self):
        """There are more locations than the cache holds."""
        locations = [(f"name {number % 700}", f"file {number % 11}", number % 13) for number in range(5000)]
        for location in locations * 2:
            self.timing.push(*location)
            self.timing.pop()
        counted = {
            (name, file, line): row[1] for (file, line, name), row in self.timing.recording.stats().stats.items()
        }
        self.assertEqual(counted, {location: 2 * locations.count(location) for location in set(locations)})

    def test_attributes_are_kept(self):
        self.timing.push("a", "f.py", 1, reason="cache miss", sizes=[1, 2], what=object)
        self.timing.pop(graph=3)
        self.timing.push("b", bytecode_count=30, inline_depth=2)
        self.timing.pop(failed=True, error="no")
        self.timing.push("c", bytecode_count=30, other=None)
        self.timing.pop(failed=False)
        self.assertEqual(
            event_tuples(self.timing),
            [
                ("begin-with", "a", {"reason": "cache miss", "sizes": [1, 2], "what": "<class 'object'>"}),
                ("end-with", {"graph": 3}),
                ("begin-code", "b"),
                ("end-failed", {"error": "no"}),
                ("begin-with", "c", {"bytecode_count": 30, "other": None}),
                ("end",),
            ],
        )
        code = [event.values for event in self.timing.recording.events() if event.kind == "begin-code"]
        self.assertEqual(code, [{"bytecode_count": 30.0, "inline_depth": 2.0}])

    def test_numbers_that_do_not_fit_become_details(self):
        for count in (-1, 2**64, 1.5, True, "many"):
            self.timing.push("a", bytecode_count=count)
            self.timing.pop()
        details = [event.details for event in self.timing.recording.events() if event.role == "begin"]
        self.assertEqual(details, [{"bytecode_count": count} for count in (-1, 2**64, 1.5, True, "many")])

    def test_wrong_arguments_are_refused(self):
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
            (lambda: self.timing.phase(3), TypeError, "name must be a str, not int"),
            (lambda: self.timing.run(), TypeError, r"run\(\) missing 1 required argument: 'name'"),
            (
                lambda: stackweave.Timing(clock=3),
                TypeError,
                "clock must be a function that returns nanoseconds, not int",
            ),
            (
                lambda: stackweave.Timing(clock=lambda: 1.5),
                TypeError,
                "clock must return an int, of nanoseconds, not float",
            ),
            (lambda: stackweave.Timing(clock=lambda: 2**70), ValueError, "clock must return nanoseconds from"),
        ]
        for call, kind, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(kind, message):
                call()
        self.assertEqual(self.timing.open_phases(), [])
        self.assertEqual(event_tuples(self.timing), [])

    def test_a_recording_without_phases_has_none(self):
        with self.recording() as recording:
            with self.assertRaisesRegex(stackweave.StateError, "phases are recorded by a stackweave.Timing"):
                stackweave.Timing.push(recording, "a")
        with self.assertRaises(TypeError):
            stackweave.Timing.push(object(), "a")

    def test_signatures_of_the_methods(self):
        expected = "(self, /, name, filename='', lineno=0, **attributes)"
        for method in (stackweave.Timing.push, stackweave.Timing.phase, stackweave.Timing.run):
            self.assertEqual(str(inspect.signature(method)), expected)
        self.assertEqual(str(inspect.signature(stackweave.Timing.pop)), "(self, /, *, failed=False, **attributes)")
        self.assertEqual(stackweave.Timing.push.__name__, "push")


class Problems(TimingCase):
    def test_all_is_well(self):
        with self.timing.phase("a"):
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
        events = list(self.timing.recording.events())
        self.assertEqual({event.kind for event in events}, {"unmatched-pop"})
        self.assertEqual(next(frame.name for frame in events[0].stack if frame.kind == "python"), "one_too_many")

    def test_phases_that_were_left_open(self):
        for _ in range(2):
            with self.timing.phase("around"):
                self.timing.push("forgotten", "f.py", 7)
                self.timing.push("inner")
        self.assertEqual(self.timing.problems(), (0, 4, 0, 0))
        (sentence,) = self.timing.explain_problems()
        names = "'forgotten' (f.py:7) (2 times), 'inner' (2 times)"
        self.assertEqual(sentence, f"4 phases left open when a phase around them ended: {names}")

    def test_phases_that_are_open(self):
        self.timing.push("a")
        thread = threading.Thread(target=self.timing.push, args=("b",))
        thread.start()
        thread.join()
        self.assertEqual(self.timing.problems().still_open + self.timing.problems().left_open, 2)
        self.assertIn("on this thread 'a'", "\n".join(self.timing.explain_problems()))
        self.timing.stop()
        self.assertGreaterEqual(self.timing.problems().still_open, 1)

    def test_a_pop_that_ended_a_phase(self):
        with self.timing.phase("a"):
            self.timing.pop()
        self.assertEqual(self.timing.problems(), (0, 0, 0, 1))
        (sentence,) = self.timing.explain_problems()
        self.assertIn("1 end of phases that were not open any more", sentence)

    def test_a_phase_that_ends_on_another_thread(self):
        phase = self.timing.phase("a").__enter__()
        other = threading.Thread(target=phase.__exit__, args=(None, None, None))
        other.start()
        other.join()
        self.assertEqual(self.timing.problems(), (0, 0, 1, 1))
        self.timing.pop()
        self.assertEqual(self.kinds(), ["begin", "end"])


if __name__ == "__main__":
    unittest.main()
