"""Stacks have the frames of interpreters and code generators that are written in Python."""

import sys
import threading
import unittest
from unittest import mock

import stackweave
from tests.support import twice


def names(captured, *kinds):
    return [frame.name for frame in captured.frames if not kinds or frame.kind in kinds]


def run_program(observe):
    """Runs the loop of an interpreter, which has a separate stack for the functions that it runs."""
    return call(observe)


def call(observe):
    return observe()


class FrameSources(unittest.TestCase):
    def test_frames_stand_inside_the_loop_that_runs_them(self):
        program = [("leaf", "program.lang", 3), ("main", "program.lang", 9)]
        for runs_in in (run_program, run_program.__code__):
            with stackweave.register_frame_source(lambda: program, runs_in=runs_in):
                captured = run_program(stackweave.capture)
            found = names(captured, "python", "script")
            self.assertEqual(found[:4], ["call", "leaf", "main", "run_program"])
            frame = captured.frames[names(captured).index("leaf")]
            self.assertEqual((frame.kind, frame.filename, frame.lineno), ("script", "program.lang", 3))
            self.assertEqual((frame.qualname, frame.module, frame.colno), (None, None, None))

    def test_frames_stand_in_the_innermost_of_several_loops(self):
        with stackweave.register_frame_source(lambda: [("leaf", "f", 1)], runs_in=run_program):
            captured = run_program(lambda: run_program(stackweave.capture))
        found = names(captured, "python", "script")
        self.assertEqual(found[:6], ["call", "leaf", "run_program", "<lambda>", "call", "run_program"])

    def test_frames_without_a_loop_are_the_innermost(self):
        with stackweave.register_frame_source(lambda: [("leaf", "f", 1)]):
            captured = call(stackweave.capture)
        self.assertEqual(names(captured)[:2], ["leaf", "call"])

    def test_a_removed_source_is_not_called_but_its_frames_stay(self):
        registration = stackweave.register_frame_source(lambda: [("leaf", "f", 1)])
        captured = call(stackweave.capture)
        registration.remove()
        registration.remove()
        self.assertEqual(names(call(stackweave.capture), "script"), [])
        self.assertEqual(names(captured, "script"), ["leaf"])

    def test_script_frames_can_be_left_out(self):
        calls = []
        with stackweave.register_frame_source(lambda: calls.append(1) or [("leaf", "f", 1)]):
            self.assertEqual(names(stackweave.capture(script=False), "script"), [])
            self.assertEqual(calls, [])
            self.assertEqual(names(stackweave.capture(python=False, native=False)), ["leaf"])

    def test_equal_script_stacks_are_equal(self):
        with stackweave.register_frame_source(lambda: [("leaf", "f", 1)]):
            first, second = twice(call, stackweave.capture)
        with stackweave.register_frame_source(lambda: [("leaf", "f", 2)]):
            other = call(stackweave.capture)
        self.assertEqual(first, second)
        self.assertNotEqual(first.frames[0], other.frames[0])

    def test_several_sources_are_called(self):
        with stackweave.register_frame_source(lambda: [("one", "f", 1)], runs_in=run_program):
            with stackweave.register_frame_source(lambda: [("two", "f", 1)], runs_in=call):
                captured = run_program(lambda: stackweave.capture())
        self.assertEqual(names(captured, "python", "script")[:5], ["<lambda>", "two", "call", "one", "run_program"])

    def test_registering_again_and_again_needs_no_more_numbers(self):
        for number in range(1000):
            with stackweave.register_frame_source(lambda number=number: [(f"n{number}", "f", 1)]):
                self.assertEqual(names(stackweave.capture(), "script"), [f"n{number}"])

    def test_a_capture_inside_a_source_does_not_call_it_again(self):
        inner = []

        def source():
            inner.append(stackweave.capture())
            return [("leaf", "f", 1)]

        with stackweave.register_frame_source(source):
            captured = call(stackweave.capture)
        self.assertEqual(len(inner), 1)
        self.assertEqual(names(inner[0], "script"), [])
        self.assertEqual(names(captured, "script"), ["leaf"])

    def test_an_exception_is_reported_once_and_counted(self):
        def source():
            raise KeyError("lost")

        before = stackweave.stats()["errors"]["frame_sources"]
        with mock.patch.object(sys, "unraisablehook") as hook, stackweave.register_frame_source(source):
            for _ in range(3):
                self.assertEqual(names(call(stackweave.capture))[0], "call")
        self.assertEqual(hook.call_count, 1)
        self.assertIs(hook.call_args[0][0].exc_type, KeyError)
        self.assertEqual(stackweave.stats()["errors"]["frame_sources"], before + 3)

    def test_an_interrupt_gets_through(self):
        def source():
            raise KeyboardInterrupt

        with stackweave.register_frame_source(source), self.assertRaises(KeyboardInterrupt):
            stackweave.capture()

    def test_nonsense_is_reported(self):
        for nonsense in (None, 1, [1], [("name",)], [("name", "file", "line")], [(1, 2, 3)]):
            with mock.patch.object(sys, "unraisablehook") as hook:
                with stackweave.register_frame_source(lambda nonsense=nonsense: nonsense):
                    self.assertEqual(names(stackweave.capture(), "script"), [])
            self.assertIs(hook.call_args[0][0].exc_type, TypeError)

    def test_each_thread_has_its_own_frames(self):
        def work(name):
            mine.name = name
            for _ in range(200):
                found.add((name, tuple(names(stackweave.capture(), "script"))))

        mine, found = threading.local(), set()
        with stackweave.register_frame_source(lambda: [(mine.name, "f", 1)]):
            threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(found, {(f"t{number}", (f"t{number}",)) for number in range(4)})

    def test_wrong_arguments_are_refused(self):
        with self.assertRaisesRegex(TypeError, "source must be callable; int is not"):
            stackweave.register_frame_source(1)
        with self.assertRaisesRegex(TypeError, "runs_in must be a function or its code, not int"):
            stackweave.register_frame_source(list, runs_in=1)


class ExtraFrames(unittest.TestCase):
    def generated(self, filename):
        namespace = {"stackweave": stackweave}
        exec(compile("def generated():\n\n    return stackweave.capture()\n", filename, "exec"), namespace)
        return namespace["generated"]()

    def test_generated_code_is_followed_by_its_original(self):
        def extra(filename, line):
            requested.append((filename, line))
            return [("inner", "model.py", 7), ("outer", "model.py", 9)] if filename == "generated.py" else None

        requested = []
        captured = self.generated("generated.py")
        with stackweave.register_extra_frames(extra):
            frames = captured.frames
            self.assertEqual([frame.name for frame in frames[:3]], ["generated", "inner", "outer"])
            self.assertEqual([frame.kind for frame in frames[:3]], ["python", "extra", "extra"])
            self.assertEqual((frames[1].filename, frames[1].lineno), ("model.py", 7))
            dicts = stackweave.symbolize([captured])[0]
            self.assertEqual([frame["kind"] for frame in dicts[:3]], ["python", "extra", "extra"])
        self.assertIn(("generated.py", 3), requested)
        self.assertNotIn("extra", {frame["kind"] for frame in stackweave.symbolize([captured])[0]})
        self.assertIs(captured.frames, frames)

    def test_an_exception_is_reported_once_and_counted(self):
        def extra(_filename, _line):
            raise KeyError("lost")

        before = stackweave.stats()["errors"]["extra_frames"]
        with mock.patch.object(sys, "unraisablehook") as hook, stackweave.register_extra_frames(extra):
            self.assertEqual(self.generated("other.py").frames[0].name, "generated")
        self.assertEqual(hook.call_count, 1)
        self.assertGreater(stackweave.stats()["errors"]["extra_frames"], before)

    def test_a_generator_may_capture_and_resolve(self):
        def extra(filename, _line):
            if filename != "generated.py" or busy:
                return None
            busy.append(True)
            name = stackweave.capture(native=False).frames[0].name
            busy.clear()
            return [(name, filename, 1)]

        busy = []
        with stackweave.register_extra_frames(extra):
            frames = self.generated("generated.py").frames
        self.assertEqual([frame.name for frame in frames[:2]], ["generated", "extra"])

    def test_what_is_not_callable_is_refused(self):
        with self.assertRaisesRegex(TypeError, "extra must be callable; int is not"):
            stackweave.register_extra_frames(1)
