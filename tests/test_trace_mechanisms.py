"""Other tools that observe calls (profilers, debuggers, coverage) work beside a trace as if they were alone."""

import contextlib
import cProfile
import os
import sys
import threading
import unittest

import stackweave
from tests.trace_support import MECHANISMS, Counts, TraceCase, key_of_code, load

MONITORING = sys.version_info >= (3, 12)


def leaf():
    return None


def branch(depth):
    leaf()
    return branch(depth - 1) if depth else leaf()


def code_key(code):
    return None if isinstance(code, str) else key_of_code(code)


class Others(TraceCase):
    def test_cprofile_inside_a_trace_and_around_it(self):
        """Both see all calls, if the trace has a tool id of its own."""
        program = load("recursion")
        if not MONITORING:
            raise unittest.SkipTest("see the next test")
        profiler = cProfile.Profile(builtins=False)
        with self.tracing(gc=False) as trace:
            profiler.enable()
            program.main()
            profiler.disable()
        functions, _ = Counts.from_profiler(profiler.getstats(), code_key).of(program.__file__)
        self.assertEqual(Counts.from_stats(trace.recording.stats()).of(program.__file__)[0], functions)
        profiler = cProfile.Profile(builtins=False)
        profiler.enable()
        with self.tracing(gc=False) as trace:
            program.main()
        profiler.disable()
        self.assertEqual(Counts.from_profiler(profiler.getstats(), code_key).of(program.__file__)[0], functions)
        self.assertEqual(Counts.from_stats(trace.recording.stats()).of(program.__file__)[0], functions)

    def test_cprofile_beside_the_evaluation_hook(self):
        program = load("mixed")
        if MONITORING:
            raise unittest.SkipTest("there is no such hook here")
        profiler = cProfile.Profile(builtins=False)
        with self.tracing(gc=False, mechanism="eval") as trace:
            profiler.enable()
            program.main()
            profiler.disable()
        of_cprofile = Counts.from_profiler(profiler.getstats(), code_key).of(program.__file__)
        self.assertEqual(Counts.from_stats(trace.recording.stats()).of(program.__file__), of_cprofile)

    def test_the_profile_function_of_another_tool_is_not_replaced(self):
        def function(frame, event, argument):
            return None

        sys.setprofile(function)
        try:
            with self.assertRaisesRegex(stackweave.StartError, "profile"):
                self.tracing(mechanism="profile").start()
            self.assertIs(sys.getprofile(), function)
        finally:
            sys.setprofile(None)
        trace = self.trace(lambda: branch(1), mechanism="profile")
        self.assertEqual(len(self.replay(trace).called("branch")), 2)
        self.assertIsNone(sys.getprofile())

    def test_a_profile_function_that_is_set_later_stays(self):
        """It replaces that of the trace, if the trace uses one; otherwise both see all calls."""

        def main():
            sys.setprofile(function)
            branch(2)

        def function(frame, event, argument):
            seen.append((event, frame.f_code.co_name))

        for mechanism in self.each_mechanism():
            seen = []
            with self.tracing(mechanism=mechanism, gc=False) as trace:
                main()
            self.assertIs(sys.getprofile(), function)
            sys.setprofile(None)
            self.assertEqual(seen.count(("call", "branch")), 3)
            self.assertEqual(len(self.replay(trace).called("branch")), 0 if mechanism == "profile" else 3)
            self.assertEqual(
                trace.tracer_stats()["unrecorded_threads"], int(mechanism == "profile"), "the thread is counted"
            )

    def test_a_trace_leaves_no_profile_function_behind(self):
        for mechanism in self.each_mechanism():
            self.trace(leaf, mechanism=mechanism)
            self.assertIsNone(sys.getprofile())
            seen = []
            thread = threading.Thread(target=lambda: seen.append(sys.getprofile()))
            thread.start()
            thread.join()
            self.assertEqual(seen, [None])

    def test_a_debugger_sees_every_line(self):
        """It sees them before, during and after the trace; and the trace has every call."""
        lines = []

        def tracer(frame, event, _argument):
            if frame.f_code.co_filename == __file__:
                lines.append((event, frame.f_lineno))
            return tracer

        def debugged():
            before = sys.gettrace()
            sys.settrace(tracer)
            try:
                branch(2)
            finally:
                sys.settrace(before)

        debugged()
        expected = list(lines)
        self.assertGreater(len(expected), 15)
        for mechanism in self.each_mechanism():
            lines.clear()
            trace = self.trace(debugged, mechanism=mechanism)
            self.assertEqual(lines, expected)
            calls = [span for span in self.replay(trace).called("branch") if span.kind == "call"]
            self.assertEqual(len(calls), 3)
            lines.clear()
            debugged()
            self.assertEqual(lines, expected)


@unittest.skipUnless(MONITORING, "sys.monitoring came with 3.12")
class Tools(TraceCase):
    """Coverage and other tools have tool ids of their own."""

    @contextlib.contextmanager
    def tool(self, number, name="a test"):
        sys.monitoring.use_tool_id(number, name)
        try:
            yield
        finally:
            sys.monitoring.set_events(number, 0)
            for event in (sys.monitoring.events.LINE, sys.monitoring.events.PY_START, sys.monitoring.events.PY_RETURN):
                sys.monitoring.register_callback(number, event, None)
            sys.monitoring.free_tool_id(number)

    def test_lines_are_covered_as_before(self):
        events = sys.monitoring.events

        def covered(line):
            seen = []
            with self.tool(sys.monitoring.COVERAGE_ID):
                sys.monitoring.register_callback(
                    sys.monitoring.COVERAGE_ID, events.LINE, lambda code, line: seen.append((code.co_name, line))
                )
                sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, events.LINE)
                branch(2)
                sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, 0)
            return [each for each in seen if each[0] in ("branch", "leaf")]

        expected = covered(0)
        self.assertGreater(len(expected), 8)
        answers = []
        trace = self.trace(lambda: answers.append(covered(0)))
        self.assertEqual(answers, [expected])
        self.assertEqual(len(self.replay(trace).called("branch")), 3)

    def test_another_tool_that_disables_its_events_disables_none_of_the_trace(self):
        events = sys.monitoring.events
        with self.tool(sys.monitoring.COVERAGE_ID):
            sys.monitoring.register_callback(
                sys.monitoring.COVERAGE_ID, events.PY_START, lambda *_: sys.monitoring.DISABLE
            )
            sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, events.PY_START)
            trace = self.trace(lambda: [branch(1) for _ in range(10)])
            self.assertEqual(len(self.replay(trace).called("branch")), 20)

    def test_the_tool_id_of_the_trace_is_freed(self):
        def used():
            return [sys.monitoring.get_tool(number) for number in range(6)]

        before = used()
        with self.tracing():
            during = used()
        self.assertNotEqual(during, before)
        self.assertEqual((during[0], during[1], during[2], during[5]), (before[0], before[1], before[2], before[5]))
        self.assertEqual(used(), before)

    def test_without_a_free_tool_id_another_mechanism_is_used(self):
        with contextlib.ExitStack() as stack:
            for number in range(6):
                if sys.monitoring.get_tool(number) is None:
                    stack.enter_context(self.tool(number))
            trace = self.trace(lambda: branch(1))
            self.assertEqual(len(self.replay(trace).called("branch")), 2)
            with self.assertRaises(stackweave.StackweaveError):
                self.tracing(mechanism="monitoring").start()


class Choices(TraceCase):
    def test_a_mechanism_that_this_python_lacks_is_an_error_that_names_it(self):
        other = "eval" if MONITORING else "monitoring"
        with self.assertRaises((stackweave.StackweaveError, ValueError)) as caught:
            self.tracing(mechanism=other).start()
        self.assertIn(other, str(caught.exception))
        with self.assertRaises((stackweave.StackweaveError, ValueError)):
            self.tracing(mechanism="magic")
        self.assertFalse(os.path.exists(self.path), "no file was created")

    def test_native_calls_are_recorded_by_name(self):
        class Names(list):
            def __repr__(self):
                raise AssertionError("the repr of an argument was used")

        def main():
            names = Names()
            names.append(1)
            list.append(names, 2)
            len(names)
            "x".join([])
            {}.get(1)
            with contextlib.suppress(ValueError):
                names.remove(7)

        for mechanism in MECHANISMS:
            if mechanism == "eval":
                continue
            with self.subTest(mechanism):
                trace = self.trace(main, mechanism=mechanism, c_calls=True)
                (span,) = self.replay(trace).called("main")
                names = [child.name for child in span.children if child.kind == "c-call"]
                expected = ["list.append", "list.append", "builtins.len", "str.join", "dict.get", "list.remove"]
                self.assertEqual([name for name in names if name in expected], expected)
