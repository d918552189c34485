"""Recordings are read as events, trees and tables, of chosen processes, threads and times."""

import os
import threading
import tracemalloc

import stackweave
from tests.recordings import RecordingCase, event_tuples
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest


class Events(RecordingCase):
    def test_events_can_be_chosen_by_time(self):
        with self.recording() as recording:
            for number in range(1000):
                recording.counter("n", number)
        everything = list(recording.recording.events())
        times = [event.time_ns for event in everything]
        self.assertEqual(times, sorted(times))
        self.assertTrue(all(abs(event.time * 1e9 - event.time_ns) < 1 for event in everything))
        start, end = everything[100].time_ns, everything[700].time_ns
        chosen = [event.time_ns for event in recording.recording.events(start=start / 1e9, end=end / 1e9)]
        self.assertEqual(chosen, [time for time in times if start <= time < end])
        self.assertEqual(list(recording.recording.events(start=times[-1] / 1e9 + 1)), [])
        self.assertEqual(len(list(recording.recording.events(end=times[-1] / 1e9 + 1))), 1000)

    def test_events_can_be_chosen_by_thread_and_process(self):
        def work():
            recording.instant("in thread", stack=False)
            tids.append(threading.get_native_id())

        tids = []
        with self.recording() as recording:
            recording.instant("in main", stack=False)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(event_tuples(recording.recording.events(thread=tids[0])), [("instant", "in thread")])
        self.assertEqual(
            event_tuples(recording.recording.events(thread=threading.get_native_id())), [("instant", "in main")]
        )
        self.assertEqual(len(list(recording.recording.events(process=os.getpid()))), 2)
        for wanted, text in [
            ({"process": 1 << 30}, "no process 1073741824"),
            ({"thread": 1 << 30}, "no thread 1073741824"),
            ({"process": os.getpid(), "thread": 1 << 30}, "no thread 1073741824 of a process"),
        ]:
            with self.assertRaisesRegex(stackweave.RecordingError, text):
                recording.recording.events(**wanted)

    def test_an_event_describes_itself(self):
        with self.recording() as recording:
            recording.instant("tick", stack=False)
            recording.end()
        tick, end = recording.recording.events()
        self.assertRegex(repr(tick), r"<stackweave.Event instant \"tick\" at \d+\.\d+ s on thread \d+>")
        self.assertEqual((tick.kind, tick.process, tick.thread), ("instant", os.getpid(), threading.get_native_id()))
        self.assertEqual((tick.thread_name, tick.frame.kind), (threading.current_thread().name, "span"))
        self.assertEqual((end.name, end.frame, end.values, end.details, end.stack), (None, None, {}, {}, ()))

    def test_several_files_are_one_recording(self):
        other = os.path.join(self.folder, "other.swv")
        with self.recording() as recording:
            recording.instant("one", stack=False)
            with stackweave.Recorder(other) as second:
                second.instant("two", stack=False)
            recording.instant("three", stack=False)
        for paths in ([self.path, other], self.folder, [self.folder]):
            opened = stackweave.open(paths)
            self.assertEqual([event.name for event in opened.events()], ["one", "two", "three"])
            self.assertEqual((len(opened.info()["processes"]), opened.info()["events"]), (2, 3))
            self.assertEqual(opened.events(start=0).__next__().name, "one")

    def test_reading_takes_little_memory(self):
        with self.recording() as recording:
            for number in range(200_000):
                recording.counter("n", number)
        tracemalloc.start()
        try:
            count = sum(1 for _ in recording.recording.events())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        self.assertEqual(count, 200_000)
        self.assertLess(peak, 1 << 20)

    def test_threads_may_share_an_iterator(self):
        def read():
            for event in events:
                seen.append(event.values["value"])

        with self.recording() as recording:
            for number in range(20_000):
                recording.counter("n", number)
        events, seen = recording.recording.events(), []
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(seen), [float(number) for number in range(20_000)])


class Profiles(RecordingCase):
    def record_spans(self):
        with self.recording() as recording:
            for _ in range(3):
                with recording.span("outer"):
                    with recording.span("inner"):
                        with recording.span("inner"):
                            pass
                    with recording.span("other"):
                        pass
        return recording

    def test_a_tree_has_a_node_for_each_path(self):
        root = self.record_spans().recording.tree()
        self.assertEqual((root.name, root.measure, root.kind), (None, "time", None))
        (outer,) = root.children
        self.assertEqual((outer.name, outer.calls, outer.kind, outer.filename), ("outer", 3, "span", None))
        inner, other = sorted(outer.children, key=lambda node: node.name)
        self.assertEqual((inner.name, inner.calls, other.name, other.calls), ("inner", 3, "other", 3))
        (again,) = inner.children
        self.assertEqual((again.name, again.calls, again.children), ("inner", 3, ()))
        self.assertAlmostEqual(outer.total, outer.self + inner.total + other.total, 9)
        self.assertAlmostEqual(inner.total, inner.self + again.total, 9)
        self.assertEqual(again.total, again.self)
        self.assertIn("outer", str(root))
        self.assertIn("outer", repr(outer))

    def test_a_table_counts_as_cprofile_does(self):
        recording = self.record_spans()
        rows = {row.name: row for row in recording.recording.top()}
        self.assertEqual(
            {name: (row.calls, row.primitive_calls) for name, row in rows.items()},
            {
                "outer": (3, 3),
                "inner": (6, 3),
                "other": (3, 3),
            },
        )
        self.assertAlmostEqual(sum(row.self for row in rows.values()), rows["outer"].total, 9)
        self_times = [row.self for row in recording.recording.top()]
        self.assertEqual(self_times, sorted(self_times, reverse=True))
        self.assertEqual(len(recording.recording.top(2)), 2)

    def test_spans_can_be_chosen(self):
        recording = self.record_spans()
        self.assertEqual({row.name for row in recording.recording.top(exclude=["inner"])}, {"outer", "other"})
        self.assertEqual({row.name for row in recording.recording.top(include="function:o*")}, {"outer", "other"})
        self.assertEqual(recording.recording.top(kind="python"), [])
        self.assertEqual(recording.recording.top(start=3600), [])
        with self.assertRaisesRegex(ValueError, "measure must be one of time, samples"):
            recording.recording.tree(measure="luck")
        with self.assertRaisesRegex(ValueError, "kind may hold python"):
            recording.recording.tree(kind=["luck"])

    def test_samples_and_memory_are_trees_of_functions(self):
        def leaf(recording):
            recording.traceback(weight=5)
            recording.allocation(16, 100)
            recording.allocation(32, 50)
            recording.free(16)

        with self.recording() as recording:
            leaf(recording)
            leaf(recording)
        rows = {row.name.rsplit(".", 1)[-1]: row for row in recording.recording.top(measure="samples", all=True)}
        self.assertEqual((rows["leaf"].self, rows["leaf"].total), (10, 10))
        self.assertEqual(rows[self._testMethodName].total, 10)
        self.assertEqual(rows["leaf"].filename, __file__)
        live = {row.name.rsplit(".", 1)[-1]: row.total for row in recording.recording.top(measure="live")}
        self.assertEqual(live["leaf"], 50)
        allocated = recording.recording.tree(measure="bytes")
        self.assertEqual((allocated.total, allocated.measure), (300, "bytes"))
