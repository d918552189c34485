"""stats(), phases(), runs() and the text have the times of phases to the nanosecond."""

import contextlib
import io
import json
import os
import pstats
import random
import subprocess
import threading
import unittest

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest
from tests.test_export import FORMATS

setUpModule = run_on_oldest_and_newest

MS = 1_000_000


class Clock:
    """A clock in nanoseconds that changes only when a test sets it."""

    def __init__(self):
        self.now = 10 * MS

    def __call__(self):
        return self.now


class TimingCase(RecordingCase):
    """Has a timing recorder with a clock of its own."""

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        self.timing = stackweave.Timing(self.path, clock=self.clock)
        self.addCleanup(self.timing.stop)

    def at(self, milliseconds):
        """Moves the clock to this time."""
        self.clock.now = (10 + milliseconds) * MS
        return self.timing

    def push(self, milliseconds, name, filename="model.py", line=10, **attributes):
        self.at(milliseconds).push(name, filename, line, **attributes)

    def pop(self, milliseconds, **attributes):
        self.at(milliseconds).pop(**attributes)

    def opened(self):
        self.timing.stop()
        return stackweave.open(self.path)


def costs(row):
    """Returns the calls of a row, and its times in whole nanoseconds."""
    times = (row.self, row.total, row.total_of_all)
    return (row.calls, row.primitive_calls, *(round(time * 1e9) for time in times))


def by_name(rows):
    return {row.name: row for row in rows}


class Phases(TimingCase):
    def test_recursion_is_counted_as_cprofile_does(self):
        self.push(0, "main")
        self.push(10, "fib")
        self.push(20, "fib")
        self.pop(80)
        self.pop(90)
        self.pop(100)
        rows = by_name(self.opened().phases())
        self.assertEqual(costs(rows["fib"]), (2, 1, 80 * MS, 80 * MS, 140 * MS))
        self.assertEqual(costs(rows["main"]), (1, 1, 20 * MS, 100 * MS, 100 * MS))
        callers = by_name(rows["fib"].callers)
        self.assertEqual(costs(callers["main"]), (1, 1, 20 * MS, 80 * MS, 80 * MS))
        self.assertEqual(costs(callers["fib"]), (1, 1, 60 * MS, 60 * MS, 60 * MS))
        self.assertEqual(rows["main"].callers, ())
        self.assertIsInstance(rows["fib"], stackweave.PhaseCost)
        self.assertIsInstance(callers["fib"], stackweave.CallerCost)

    def test_the_most_expensive_comes_first_and_has_its_location(self):
        self.push(0, "cheap", "a.py", 3)
        self.push(1, "expensive", "", 0)
        self.pop(9)
        self.pop(10)
        first, second = self.opened().phases()
        self.assertEqual((first.name, first.filename, first.lineno), ("expensive", None, None))
        self.assertEqual((second.name, second.filename, second.lineno), ("cheap", "a.py", 3))

    def test_failures_bytecode_and_what_was_left_open(self):
        self.push(0, "f", bytecode_count=20, inline_depth=0)
        self.push(1, "f", bytecode_count=20, inline_depth=2)
        self.pop(3, failed=True, error="ValueError: no")
        self.pop(5)
        self.push(5, "g", bytecode_count=5, inline_depth=1, note="x")
        self.pop(6)
        with self.at(10).phase("outer"):
            self.push(11, "inner")
            self.at(12)
        rows = by_name(self.opened().phases())
        f, g = rows["f"], rows["g"]
        self.assertEqual((f.failed, f.left_open, f.bytecode_count, f.inline_depth), (1, 0, 20, (0, 2)))
        self.assertAlmostEqual(f.ns_per_bytecode, 5 * MS / 40)
        self.assertEqual((g.bytecode_count, g.inline_depth, g.ns_per_bytecode), (5, (1, 1), MS / 5))
        self.assertEqual((rows["inner"].left_open, rows["outer"].left_open, rows["outer"].failed), (1, 0, 0))
        self.assertEqual((rows["outer"].bytecode_count, rows["outer"].ns_per_bytecode), (None, None))

    def test_a_part_can_be_selected(self):
        self.push(0, "main")
        self.push(10, "step")
        self.pop(20)
        self.push(30, "other", "b.py", 1)
        self.pop(40)
        self.pop(50)
        opened = self.opened()
        start = next(opened.events()).time
        rows = by_name(opened.phases(start=start + 0.015, end=start + 0.032))
        self.assertEqual(
            {name: round(row.self * 1e3) for name, row in rows.items()}, {"main": 10, "step": 5, "other": 2}
        )
        self.assertEqual({row.name for row in opened.phases(include=["function:step"])}, {"step"})
        self.assertEqual({row.name for row in opened.phases(exclude="file:b.py")}, {"main", "step"})
        thread = threading.get_native_id()
        self.assertEqual(len(opened.phases(thread=thread, process=os.getpid())), 3)
        with self.assertRaisesRegex(stackweave.StackweaveError, "no process"):
            opened.phases(process=1)

    def test_it_can_be_read_while_it_is_recorded(self):
        self.push(0, "main")
        self.push(1, "step")
        self.pop(5)
        self.assertEqual(by_name(self.timing.recording.phases())["step"].calls, 1)
        self.push(5, "step")
        self.pop(6)
        self.assertEqual(by_name(self.timing.recording.phases())["step"].calls, 2)

    def test_edges_add_up_whatever_happens(self):
        generator = random.Random(7)
        self.at(0)
        depth = 0
        for _ in range(400):
            self.clock.now += generator.randrange(1000)
            if depth and generator.random() < 0.45:
                self.timing.pop(failed=generator.random() < 0.2)
                depth -= 1
            else:
                self.timing.push(generator.choice("abcd"), "x.py", 1)
                depth += 1
        rows = self.opened().phases()
        statistics = by_name(rows)
        ns = 1e9
        for row in rows:
            begun = [caller for other in rows for caller in other.callers if caller.name == row.name]
            below = sum(round(caller.total_of_all * ns) for caller in begun)
            self.assertEqual(round(row.self * ns) + below, round(row.total_of_all * ns))
            self.assertLessEqual(sum(caller.calls for caller in row.callers), row.calls)
        outermost = {name: row.calls - sum(caller.calls for caller in row.callers) for name, row in statistics.items()}
        self.assertGreaterEqual(min(outermost.values()), 0)
        self.assertGreaterEqual(sum(outermost.values()), 1)

    def test_statistics_are_those_of_pstats(self):
        self.push(0, "main", "a.py", 1)
        self.push(10, "fib", "a.py", 5)
        self.push(20, "fib", "a.py", 5)
        self.pop(30)
        self.pop(40)
        self.pop(50)
        opened = self.opened()
        table = opened.stats().stats
        row = table["a.py", 5, "fib"]
        self.assertEqual(row[:2], (1, 2))
        self.assertEqual([round(time * 1e9) for time in row[2:4]], [30 * MS, 30 * MS])
        path = opened.export(os.path.join(self.folder, "out.prof"))
        stats = pstats.Stats(path, stream=io.StringIO())
        stats.sort_stats("cumulative").print_stats().print_callers()
        self.assertEqual(stats.stats.keys(), table.keys())


class Runs(TimingCase):
    def compile(self):
        with self.at(0).run("forward", "model.py", 10, compile_id="0/0") as run:
            self.push(10, "tracing", "", 0)
            self.push(20, "inlined")
            self.pop(30)
            self.pop(40)
            with self.at(50).run("nested"):
                self.push(60, "tracing", "", 0)
                self.pop(65)
                self.at(70)
            run.note(graphs=1)
            self.at(100)
        with contextlib.suppress(ValueError), self.at(200).run("backward"):
            self.at(230)
            raise ValueError("no")

    def test_each_run_is_a_row(self):
        self.compile()
        first, nested, last = self.opened().runs()
        self.assertIsInstance(first, stackweave.Run)
        self.assertEqual((first.number, first.name, first.filename, first.lineno), (1, "forward", "model.py", 10))
        self.assertEqual((first.failed, first.unfinished, first.parent), (False, False, None))
        self.assertEqual(first.attributes, {"compile_id": "0/0", "graphs": 1})
        phases = {name: round(seconds * 1e9) for name, seconds in first.phases.items()}
        self.assertEqual(phases, {"tracing": 35 * MS, "nested": 20 * MS})
        self.assertEqual(next(iter(first.phases)), "tracing")
        self.assertEqual((first.thread, first.process), (threading.get_native_id(), os.getpid()))
        self.assertEqual((nested.number, nested.name, nested.parent, nested.filename), (2, "nested", 1, None))
        self.assertEqual((last.number, last.failed, last.attributes), (3, True, {"error": "ValueError: no"}))
        self.assertEqual([round(run.duration * 1e9) for run in (first, nested, last)], [100 * MS, 20 * MS, 30 * MS])
        self.assertEqual(round((last.began - first.began) * 1e9), 200 * MS)

    def test_phases_of_one_name_are_added(self):
        with self.at(0).run("forward"):
            for number, (name, line) in enumerate([("trace", 0), ("lower", 0), ("trace", 3)]):
                self.push(20 * number, name, "", line)
                self.pop(20 * number + (15 if name == "lower" else 10))
        (run,) = self.opened().runs()
        phases = [(name, round(seconds * 1e9)) for name, seconds in run.phases.items()]
        self.assertEqual(phases, [("trace", 20 * MS), ("lower", 15 * MS)])

    def test_a_run_that_goes_on_is_unfinished(self):
        self.timing.push("around")
        with self.at(1).run("unfinished"):
            self.push(5, "inside", "", 0)
            (run,) = self.timing.recording.runs()
        self.assertEqual((run.unfinished, run.failed, round(run.duration * 1e9)), (True, False, 4 * MS))

    def test_runs_of_threads_lie_in_one_order(self):
        def work():
            with self.timing.run("worker", "w.py", 1):
                self.clock.now += MS

        self.at(0)
        with self.timing.run("main"):
            self.clock.now += MS
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            self.clock.now += MS
        opened = self.opened()
        runs = opened.runs()
        self.assertEqual([(run.name, run.parent) for run in runs], [("main", None), ("worker", None)])
        self.assertNotEqual(runs[0].thread, runs[1].thread)
        (one,) = opened.runs(thread=runs[1].thread)
        self.assertEqual((one.number, one.name, round(one.duration * 1e9)), (1, "worker", MS))

    def test_recordings_without_runs_have_none(self):
        with self.recording_of_spans() as path:
            opened = stackweave.open(path)
            self.assertEqual(opened.runs(), [])
            self.assertEqual([row.name for row in opened.phases()], ["span"])

    @contextlib.contextmanager
    def recording_of_spans(self):
        path = os.path.join(self.folder, "spans.swv")
        with stackweave.Recorder(path) as recording, recording.span("span"):
            pass
        yield path

    def test_the_text_is_that_of_the_command(self):
        self.compile()
        opened = self.opened()
        command = [PYTHON, "-m", "stackweave", "phases", self.path]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=True)
        self.assertEqual(opened.phases_text(), done.stdout)
        self.assertEqual(done.stderr, "")
        text = opened.phases_text(1, sort="total", width=70)
        self.assertIn("(2 more: --runs shows them)", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 70)
        self.assertNotIn("Phases", opened.phases_text(only_runs=True))
        with self.assertRaisesRegex(ValueError, "self, total, calls, failed"):
            opened.phases_text(sort="name")
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, cwd=ROOT, timeout=120, check=True)
        shown = json.loads(done.stdout)
        self.assertEqual([run["attributes"] for run in shown["runs"]], [run.attributes for run in opened.runs()])
        self.assertEqual([row["self"] for row in shown["phases"]], [row.self for row in opened.phases()])


class Processes(RecordingCase):
    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_children_of_fork_have_rows_of_their_own(self):
        code = """
import os, sys, warnings, stackweave
warnings.simplefilter("ignore", DeprecationWarning)
timing = stackweave.Timing(sys.argv[1])
with timing.run("parent"):
    child = os.fork()
    with timing.run("both", inside=child):
        pass
    if child == 0:
        timing.stop()
        os._exit(0)
    os.waitpid(child, 0)
timing.stop()
"""
        self.run_script(code)
        opened = stackweave.open(self.folder)
        runs = opened.runs()
        names = sorted((run.name, run.parent is None) for run in runs)
        self.assertEqual(names, [("both", False), ("both", True), ("parent", True)])
        self.assertEqual(len({run.process for run in runs}), 2)
        rows = by_name(opened.phases())
        self.assertEqual((rows["both"].calls, rows["parent"].calls), (2, 1))


class Exports(TimingCase):
    def test_every_format_takes_phases(self):
        with self.at(0).run("forward", "/usr/lib/python3/dist-packages/model.py", 10):
            self.push(10, "tracing", "", 0)
            self.pop(20, failed=True, error="no")
            self.at(30)
        opened = self.opened()
        for format, name in FORMATS.items():
            with self.subTest(format):
                self.assertTrue(os.path.exists(opened.export(os.path.join(self.folder, name))))
        with open(os.path.join(self.folder, FORMATS["chrome"])) as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        (tracing,) = (event["args"] for event in events if event["name"] == "tracing")
        self.assertEqual(tracing, {"failed": True, "error": "no"})
        with open(os.path.join(self.folder, FORMATS["flamegraph"])) as file:
            picture = file.read()
        self.assertIn("forward", picture)
        self.assertIn("model.py:10", picture)
        opened.export(os.path.join(self.folder, "time.svg"), time_order=True)
