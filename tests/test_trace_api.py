"""stackweave.trace as programs use it: its options, as a context, as a decorator, and the views of its recording."""

import asyncio
import gc
import os
import pstats
import sys
import threading
import unittest

import stackweave
from stackweave._options.kinds import Duration
from stackweave._options.special_kinds import DEMOTION, Demotion
from stackweave._recorders import argument_values as values
from tests.recordings import RecordingCase, recording_of
from tests.support import PYTHON, run_python


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def add(one, other=2, *rest, key=None, **more):
    return one


class Shelf:
    def put(self, thing, /, *, on):
        return lambda: thing  # A closure keeps it in a cell.


class Loud:
    def __repr__(self):
        raise AssertionError("a method of a value was called")

    __str__ = __format__ = __len__ = __iter__ = __bool__ = __eq__ = __hash__ = __repr__


class LoudText(str):
    __repr__ = Loud.__repr__


class TraceCase(RecordingCase):
    def trace(self, **keywords):
        return stackweave.trace(self.path, **keywords)

    def calls(self, trace, function):
        return sum(row.calls for row in recording_of(trace).top() if row.name == function)


class Options(TraceCase):
    def test_durations_are_read_as_people_write_them(self):
        for value, expected in [
            (0, 0.0),
            (1, 1.0),
            (0.5, 0.5),
            ("10us", 10e-6),
            ("1.5 ms", 1.5e-3),
            ("250ns", 250e-9),
            ("3 µs", 3e-6),
            (".5s", 0.5),
            (" 2 min ", 120.0),
        ]:
            self.assertAlmostEqual(Duration().checked("min_duration", value), expected, places=12)
        for value in ["", "10", "us", "10 parsecs", "-1us", "1e3us", -1, float("nan"), float("inf")]:
            with self.assertRaisesRegex(ValueError, "min_duration must be", msg=value):
                Duration().checked("min_duration", value)
        for value in [None, True, b"10us", [1]]:
            with self.assertRaisesRegex(TypeError, "min_duration must be a number of seconds or a time", msg=value):
                Duration().checked("min_duration", value)

    def test_demotion_is_a_flag_or_a_pair(self):
        for value, expected in [
            (False, None),
            (True, DEMOTION),
            ((100, "500ns"), (100, 500e-9)),
        ]:
            self.assertEqual(Demotion().checked("demote", value), expected)
        for value in [(1,), (0, 1), (1, -1), (1, 2, 3)]:
            with self.assertRaisesRegex(ValueError, "demote must be", msg=value):
                Demotion().checked("demote", value)
        for value in [1, "yes", ("1", 2), (1, None)]:
            with self.assertRaisesRegex(TypeError, "demote must be", msg=value):
                Demotion().checked("demote", value)

    def test_wrong_options_are_errors_before_anything_happens(self):
        for keywords, error, text in [
            ({"c_calls": 1}, TypeError, "c_calls must be a bool, not int"),
            ({"include": 3}, TypeError, "include must be patterns of functions, not int"),
            ({"exclude": [3]}, TypeError, "exclude must be patterns of functions, which are texts, not int"),
            ({"include": ["function:"]}, ValueError, "include has a pattern without a text: 'function:'"),
            ({"min_duration": "long"}, ValueError, "min_duration must be a time like"),
            ({"max_depth": 0}, ValueError, "max_depth must be greater than 0"),
            ({"max_depth": 1.5}, TypeError, "max_depth must be a whole number, not float"),
            ({"max_events": -1}, ValueError, "max_events must be greater than 0"),
            ({"demote": "yes"}, TypeError, "demote must be True or a pair"),
            ({"gc": None}, TypeError, "gc must be a bool"),
            ({"tasks": "all"}, TypeError, "tasks must be a bool"),
            ({"arguments": [None]}, TypeError, "arguments must be patterns of functions"),
            ({"native_stacks": 1}, TypeError, "native_stacks must be patterns of functions"),
            ({"torch": "yes"}, TypeError, "torch must be a bool"),
            ({"logs": 1.5}, TypeError, "logs must be True, the name of a logger, a level"),
            ({"logs": ("a", "loud")}, ValueError, "logs must have a level"),
            ({"mechanism": "magic"}, ValueError, 'mechanism must be "auto", "monitoring", "eval" or "profile"'),
            ({"buffer": "much"}, ValueError, "buffer must be a size"),
            ({"colour": "red"}, TypeError, "unexpected keyword argument 'colour'"),
        ]:
            with self.assertRaisesRegex(error, text):
                self.trace(**keywords)
        self.assertEqual(os.listdir(self.folder), [])

    def test_options_of_recorders_are_accepted(self):
        with self.trace(ring="1MB", when_full="drop", flush_every=1, buffer="1MB", follow_forks=False) as trace:
            fib(5)
        self.assertTrue(trace.recording.info()["processes"][0]["ring"])


def calls_in(tree, function):
    """Returns the number of calls of a function in a tree of calls."""
    return sum(calls_in(child, function) for child in tree.children) + tree.calls * (tree.name == function)


class Tracing(TraceCase):
    def test_calls_are_there_in_every_form(self):
        with self.trace() as trace:
            fib(10)
        self.assertEqual(self.calls(trace, "fib"), 177)
        stats = trace.recording.stats()
        self.assertIsInstance(stats, pstats.Stats)
        rows = {name: row for (_, _, name), row in stats.stats.items()}
        self.assertEqual(rows["fib"][:2], (1, 177))
        begins = [event for event in trace.recording.events() if event.role == "begin" and event.name == "fib"]
        self.assertEqual(len(begins), 177)
        tree = trace.recording.tree()
        self.assertIn(self.id().rpartition(".")[2], str(tree))  # Functions with little time have no row.
        self.assertEqual(calls_in(tree, "fib"), 177)
        exported = trace.recording.export(os.path.join(self.folder, "out.json"))
        self.assertGreater(os.path.getsize(exported), 1000)

    def test_nothing_of_ours_is_traced(self):
        with self.trace(logs=True) as trace, stackweave.span("mine"):
            fib(3)
            stackweave.instant("now", stack=False)
        files = {
            event.frame.filename for event in trace.recording.events() if event.frame and event.frame.kind == "python"
        }
        folder = os.path.dirname(stackweave.__file__)
        self.assertEqual([file for file in files if file and file.startswith(folder)], [])

    def test_a_trace_has_only_events_of_the_program(self):
        trace = self.trace(c_calls=True, logs=True)
        with trace:
            stackweave.counter("x", 1)
        decorated = stackweave.trace(os.path.join(self.folder, "other.swv"), c_calls=True)
        decorated(fib)(1)
        decorated.stop()
        for recorder, expected in ((trace, []), (decorated, ["fib"])):
            names = [e.name for e in recorder.recording.events() if e.role in ("begin", "resume") and e.kind != "gc"]
            self.assertEqual(names, expected)

    def test_what_happens_during_a_pause_is_left_out(self):
        with self.trace() as trace:
            fib(1)
            trace.pause()
            fib(10)
            trace.resume()
            fib(1)
        self.assertEqual(self.calls(trace, "fib"), 2)

    def test_only_one_trace_can_be_on(self):
        with self.trace() as trace:
            other = stackweave.trace(os.path.join(self.folder, "other.swv"))
            with self.assertRaisesRegex(stackweave.StartError, r"out\.swv', recording> is on, .*: stop it first"):
                other.start()
            self.assertEqual(self.files(), ["out.swv"])
            fib(1)
        self.assertEqual(self.calls(trace, "fib"), 1)
        with other:
            fib(2)
        self.assertEqual(self.calls(other, "fib"), 3)

    def test_a_trace_that_can_not_begin_leaves_nothing(self):
        open(self.path, "w").close()
        trace = self.trace()
        with self.assertRaisesRegex(stackweave.StartError, "out.swv"):
            trace.start()
        self.assertEqual(os.path.getsize(self.path), 0)
        with self.trace(overwrite=True) as trace:
            fib(1)
        self.assertEqual(self.calls(trace, "fib"), 1)

    def test_stopping_returns_a_summary_and_removes_all_hooks(self):
        before = list(gc.callbacks)
        with self.trace() as trace:
            self.assertEqual(len(gc.callbacks), len(before) + 1)
            with self.assertRaisesRegex(stackweave.StateError, "when it is stopped"):
                trace.tracer_stats()
            fib(5)
        self.assertEqual(gc.callbacks, before)
        self.assertGreaterEqual(trace.tracer_stats()["calls"], 15)
        self.assertIn(trace.tracer_stats()["mechanism"], ("monitoring", "eval", "profile"))
        self.assertEqual(trace.stop(), trace.stop())
        with self.assertRaisesRegex(stackweave.StateError, "was stopped"):
            trace.pause()

    def test_a_trace_has_a_repr(self):
        trace = self.trace()
        self.assertEqual(repr(trace), f"<stackweave.TraceRecorder {self.path!r}, new>")
        self.assertIsInstance(trace, stackweave.Recorder)
        self.assertIs(stackweave.trace, stackweave.TraceRecorder)

    def test_forgetting_to_stop_records_to_the_end(self):
        self.run_script(
            "import stackweave, sys\ndef f(): pass\nstackweave.trace(sys.argv[1]).start()\nfor n in range(10): f()"
        )
        self.assertEqual(self.calls(stackweave.open(self.path), "f"), 10)

    def test_forked_children_go_on_in_files_of_their_own(self):
        script = """
import os, stackweave, sys
def f(): pass
with stackweave.trace(sys.argv[1]):
    pid = os.fork()
    for n in range(5 if pid else 3): f()
    if pid: os.waitpid(pid, 0)
"""
        self.run_script(script, PYTHONWARNINGS="ignore")
        counts = sorted(self.calls(stackweave.open(os.path.join(self.folder, name)), "f") for name in self.files())
        self.assertEqual(counts, [3, 5])

    def test_other_programs_trace_as_the_environment_says(self):
        script = """
import os, stackweave, subprocess, sys
if len(sys.argv) == 2:
    with stackweave.Recorder(sys.argv[1], subprocesses=True) as recording:
        recording.instant("parent")
        subprocess.run([os.environ["PROGRAM"], "-c", os.environ["SCRIPT"], sys.argv[1], "child"], check=True)
else:
    def f(): pass
    with stackweave.trace.from_environment(max_depth=5) as trace:
        f()
"""
        self.run_script(script, SCRIPT=script, PROGRAM=PYTHON)
        self.assertEqual(self.calls(stackweave.open(self.folder), "f"), 1)
        self.assertIsNone(stackweave.trace.from_environment())


class Decorating(TraceCase):
    def test_only_calls_of_the_function_are_recorded(self):
        trace = self.trace()

        @trace
        def work(n):
            fib(3)
            return work(n - 1) + 1 if n else 0

        fib(5)
        self.assertEqual(trace.state, "new")
        self.assertEqual((work(3), work.__name__), (3, "work"))
        self.assertEqual(trace.state, "paused")
        fib(5)
        self.assertEqual(work(0), 0)
        trace.stop()
        self.assertEqual(work(1), 1)
        self.assertEqual(self.calls(trace, "fib"), 5 * 5)

    def test_a_failing_call_ends_like_any_other(self):
        trace = self.trace()

        @trace
        def work():
            raise KeyError("x")

        for _ in range(2):
            with self.assertRaises(KeyError):
                work()
            self.assertEqual(trace.state, "paused")
        trace.stop()

    def test_generators_and_coroutines_are_recorded_while_they_run(self):
        trace = self.trace()

        @trace
        def produce():
            yield fib(3)
            yield fib(3)

        @trace
        async def wait():
            fib(3)
            await asyncio.sleep(0)
            fib(3)
            return 7

        produced = produce()
        self.assertEqual(trace.state, "new")
        for _ in produced:
            self.assertEqual(trace.state, "paused")
            fib(4)
        self.assertEqual(asyncio.run(wait()), 7)
        trace.stop()
        self.assertEqual(self.calls(trace, "fib"), 4 * 5)

    def test_threads_share_it(self):
        trace = self.trace()
        inside = threading.Barrier(4)

        @trace
        def work():
            inside.wait()
            fib(5)

        for _ in range(3):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(trace.state, "paused")
        trace.stop()
        # The last thread that leaves the function pauses the trace; until then all threads are recorded.
        self.assertEqual(self.calls(trace, "fib"), 3 * 4 * 15)

    def test_a_trace_that_was_started_otherwise_goes_on(self):
        with self.trace() as trace:
            trace(fib)(1)
            self.assertEqual(trace.state, "recording")

    def test_only_functions_can_be_decorated(self):
        with self.assertRaisesRegex(TypeError, "a trace decorates functions; int is not a function"):
            self.trace()(3)


class LiveRecordings(TraceCase):
    def test_spans_instants_and_counters_go_to_all_that_record(self):
        other = stackweave.Recorder(os.path.join(self.folder, "other.swv"))
        with self.trace() as trace, other:
            with stackweave.span("both", number=3):
                stackweave.instant("moment", stack=False, text="x")
                stackweave.counter("queue", 5)
        for recorder in (trace, other):
            events = {(event.role, event.name): event for event in recorder.recording.events()}
            self.assertEqual(events["begin", "both"].details, {"number": 3})
            self.assertEqual(events["instant", "moment"].details, {"text": "x"})
            self.assertEqual(list(events["counter", "queue"].values.values()), [5])

    def test_without_a_recording_nothing_happens(self):
        with stackweave.span("unrecorded", x=1) as span:
            stackweave.instant("unrecorded")
            stackweave.counter("unrecorded", 1)
        self.assertEqual(repr(span), "<stackweave.span 'unrecorded'>")
        with self.assertRaisesRegex(TypeError, "the name of a span must be a str, not int"):
            stackweave.span(3)

    def test_a_span_decorates_and_finds_recordings_that_begin_later(self):
        @stackweave.span("step")
        def step(n):
            return step(n - 1) if n else "done"

        @stackweave.span("produce")
        def produce():
            yield 1

        self.assertEqual(step(2), "done")
        with stackweave.Recorder(self.path) as recorder:
            self.assertEqual((step(2), list(produce())), ("done", [1]))
        names = [event.name for event in recorder.recording.events() if event.role == "begin"]
        self.assertEqual(names, ["step"] * 3 + ["produce"] * 2)

    def test_a_span_ends_in_the_recordings_that_have_its_begin_and_in_no_others(self):
        first = stackweave.Recorder(self.path).start()
        with stackweave.span("outer"):
            second = stackweave.Recorder(os.path.join(self.folder, "second.swv")).start()
            with stackweave.span("inner"):
                first.stop()
        second.stop()
        self.assertEqual([(e.role, e.name) for e in second.recording.events()], [("begin", "inner"), ("end", None)])
        self.assertEqual([e.name for e in first.recording.events() if e.role == "begin"], ["outer", "inner"])


class Arguments(TraceCase):
    def test_values_of_chosen_functions_are_recorded(self):
        with self.trace(arguments=[f"{__name__}.add"]) as trace:
            add(1, "two", 3, 4, key=[5], extra={"a": None})
            add(object())
            fib(1)
        details = [event.details for event in trace.recording.events() if event.role == "begin" and event.name == "add"]
        expected = {"one": 1, "other": "two", "rest": "(3, 4)", "key": "[5]", "more": "{'extra': {'a': None}}"}
        self.assertEqual(details[0], expected)
        self.assertEqual(details[1]["one"], "<object>")
        self.assertFalse({e.name: e.details for e in trace.recording.events() if e.role == "begin"}["fib"])

    def test_methods_are_chosen_by_their_qualified_names(self):
        with self.trace(arguments=f"{__name__}.Shelf.put", native_stacks=f"{__name__}.Shelf.put") as trace:
            Shelf().put("book", on=3)
            add(1)
        begun = {event.name.rpartition(".")[2]: event for event in trace.recording.events() if event.role == "begin"}
        expected = {"self": f"<{__name__}.Shelf>", "thing": "book", "on": 3}
        self.assertEqual({"thing": "book", **begun["put"].details}, expected)
        self.assertTrue(sys.version_info < (3, 11) or "thing" in begun["put"].details)
        self.assertTrue(begun["put"].stack)
        self.assertFalse(begun["add"].details or begun["add"].stack)

    def test_native_stacks_of_chosen_functions_are_recorded(self):
        with self.trace(native_stacks=[f"{__name__}.add"]) as trace:
            add(1)
        (begin,) = [event for event in trace.recording.events() if event.role == "begin" and event.name == "add"]
        self.assertIn("native", {frame.kind for frame in begin.stack})
        self.assertFalse(begin.details)

    def test_values_are_short_and_no_code_of_the_program_runs(self):
        name = f"<{__name__}"
        for value, expected in [
            (None, None),
            (True, True),
            (7, 7),
            (2.5, 2.5),
            (float("inf"), "inf"),
            (float("nan"), "nan"),
            (1 << 60, str(1 << 60)),
            (1 << 100_000, "<int of 100001 bits>"),
            ("x", "x"),
            ("x" * 500, "x" * 100 + "..."),
            (b"x" * 500, "b'" + "x" * 98 + "..."),
            ([1, "a", b"b"], "[1, 'a', b'b']"),
            ((1,), "(1,)"),
            ([[[1]]], "[[[...]]]"),
            (list(range(100)), "[0, 1, 2, 3, 4, 5, ... 100 in all]"),
            ({"a": 1}, "{'a': 1}"),
            ({1}, "{1}"),
            (Loud(), name + ".Loud>"),
            ([Loud()], "[" + name + ".Loud>]"),
            (LoudText("x"), name + ".LoudText>"),
            (Loud, "<class " + name[1:] + ".Loud>"),
            (fib, "<function>"),
        ]:
            self.assertEqual(values.value_of(value), expected)
        loop = []
        loop.append(loop)
        self.assertEqual(values.value_of(loop), "[[[...]]]")

    def test_deleted_arguments_are_left_out(self):
        self.assertEqual(values.arguments_of(add.__code__, {"one": 1}), {"one": 1})


class Tables(TraceCase):
    def test_arrow_and_pandas_hold_the_spans(self):
        try:
            import pandas
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow and pandas are not installed")
        with self.trace() as trace:
            fib(5)
        table = trace.recording.to_arrow()
        self.assertIsInstance(table, pyarrow.Table)
        frame = trace.recording.to_pandas(thread=threading.get_native_id())
        self.assertIsInstance(frame, pandas.DataFrame)
        spans = frame[(frame["name"] == "fib") & (frame["kind"] == "span")]
        self.assertEqual(len(spans), 15)
        self.assertEqual(set(spans["filename"]), {__file__})
        self.assertTrue((spans["duration_ns"] >= spans["self_ns"]).all())

    def test_errors_name_missing_packages(self):
        script = """
import stackweave, sys
sys.modules["pyarrow"] = sys.modules["pandas"] = None
with stackweave.Recorder(sys.argv[1]) as recorder:
    recorder.instant("x")
for method in (recorder.recording.to_arrow, recorder.recording.to_pandas):
    try:
        method()
    except stackweave.StackweaveError as error:
        print(error)
"""
        messages = self.run_script(script).splitlines()
        self.assertRegex(messages[0], r"\Ato_arrow\(\) needs pyarrow, which can't be imported: ")
        self.assertRegex(messages[1], r"\Ato_pandas\(\) needs pandas, which can't be imported: ")


class Importing(unittest.TestCase):
    def test_importing_stays_cheap_and_never_imports_torch(self):
        script = "import stackweave, sys; stackweave.trace; print('torch' in sys.modules, 'logging' in sys.modules)"
        self.assertEqual(run_python(script).split(), ["False", "False"])
