"""A recording of calls and memory has options and queries."""

import os
import re
import threading
import warnings

import stackweave
from tests.memory_support import bytes_of_library, figures_of_library
from tests.record_support import RunCase, calls_of
from tests.trace_support import Replay

SIZE = 1_000_000


def leaf():
    return None


class Both(RunCase):
    def work(self, count=3):
        for _ in range(count):
            leaf()
        return self.take(SIZE)

    def test_calls_and_memory_are_in_one_file(self):
        with self.record() as record:
            kept = self.work()
            self.give(self.work())
        self.give(kept)
        self.assertEqual((self.files(), record._native_options["buffer"]), (["out.swv"], 32 << 20))
        self.assertEqual((calls_of(record, "work"), calls_of(record, "leaf")), (2, 6))
        self.assertEqual(bytes_of_library(record.recording.leaks()), SIZE)
        self.assertEqual(bytes_of_library(record.recording.peak()), 2 * SIZE)
        figures = figures_of_library(record)
        self.assertEqual((figures["allocations"], figures["bytes"]), (2, 2 * SIZE))

    def test_all_queries_of_both_work(self):
        with self.record() as record:
            kept = self.work()
        self.give(kept)
        self.assertEqual(record.tracer_stats()["calls"], sum(row.calls for row in record.recording.top(all=True)))
        self.assertGreater(record.recorder_stats()["modules"], 0)
        self.assertEqual(record.recording.top()[0].self, max(row.self for row in record.recording.top()))
        names = {name for _file, _line, name in record.recording.stats().stats}
        self.assertLessEqual({"work", "leaf"}, {name.rpartition(".")[2] for name in names})
        self.assertEqual(record.recording.tree().measure, "time")
        self.assertEqual(record.recording.tree(measure="peak").measure, "peak")
        self.assertEqual(record.recording.memory().totals().live_bytes, record.recording.memory().totals().live_bytes)
        self.assertEqual(record.recording.memory().current().bytes, record.recording.leaks().bytes)
        self.assertTrue(
            record.recording.memory().sizes()
            and record.recording.memory().threads()
            and record.recording.memory().tags()
            and record.recording.memory().timeline()
        )
        self.assertEqual(
            record.recording.memory().temporary().bytes, record.recording.memory().totals().temporary_bytes
        )
        self.assertEqual(repr(record), f"<stackweave.CombinedRecorder {self.path!r}, stopped>")

    def test_it_can_be_queried_while_it_records(self):
        with self.record() as record:
            kept = self.work()
            self.assertEqual(bytes_of_library(record.live().current()), SIZE)
            self.assertEqual(calls_of(record, "leaf"), 3)
            self.give(kept)
            self.assertEqual(bytes_of_library(record.live().current()), 0)

    def test_an_opened_recording_counts_time_by_default(self):
        with self.record():
            self.give(self.work())
        opened = stackweave.open(self.path)
        self.assertEqual(opened.tree().measure, "time")
        self.assertEqual(opened.tree(measure="peak").measure, "peak")
        self.assertEqual(opened.memory().mode, "history")
        self.assertEqual(opened.info()["missing"], [])

    def test_options_of_each(self):
        calls = {"exclude": ["leaf"], "c_calls": True, "gc": False}
        with self.record(calls=calls, memory={"mode": "aggregate", "native": False}) as record:
            sorted([2, 1])
            kept = self.work()
        self.give(kept)
        self.assertEqual((calls_of(record, "leaf"), calls_of(record, "work")), (0, 1))
        self.assertEqual(calls_of(record, "sorted"), 1)
        memory = record.recording.memory()
        self.assertEqual(memory.mode, "aggregate")
        self.assertEqual({frame.kind for row in record.recording.leaks() for frame in row.stack}, {"python"})
        self.assertTrue(any(row.bytes == SIZE for row in record.recording.leaks()))

    def test_code_of_the_package_is_not_recorded(self):
        """C calls are left out, too: the code that starts and stops the recording is not part of the program."""
        with self.record(calls={"c_calls": True, "gc": False}) as record:
            leaf()
            record.pause()
            record.resume()
            thread = threading.Thread(target=leaf, name="other")
            thread.start()
            thread.join()
        folder = os.path.dirname(stackweave.__file__) + os.sep
        rows = record.recording.top(all=True)
        self.assertEqual([row for row in rows if (row.filename or "").startswith(folder)], [])
        self.assertEqual([row.name for row in rows if "suppress" in row.name], [])
        self.assertEqual(calls_of(record, "leaf"), 2)


class Chosen(RunCase):
    def test_calls_alone(self):
        with self.record(memory=False) as record:
            leaf()
        self.assertEqual(calls_of(record, "leaf"), 1)
        for query in (record.live, record.recorder_stats):
            with self.assertRaisesRegex(stackweave.RecordingError, "memory was not recorded: record with memory=True"):
                query()
        self.assertEqual(record._native_options["buffer"], 32 << 20)

    def test_memory_alone(self):
        with self.record(calls=False) as record:
            kept = self.take(SIZE)
        self.give(kept)
        self.assertEqual(bytes_of_library(record.recording.leaks()), SIZE)
        with self.assertRaisesRegex(stackweave.RecordingError, "calls were not recorded: record with calls=True"):
            record.tracer_stats()
        self.assertEqual(stackweave.open(self.path).tree().measure, "peak")
        self.assertEqual(record._native_options["buffer"], 32 << 20)

    def test_wrong_options_are_refused(self):
        for options, kind, text in [
            ({"calls": False, "memory": False}, ValueError, "both False, so nothing would be recorded"),
            ({"calls": {"mode": "sampled"}}, ValueError, "calls has no option 'mode': there are include, "),
            ({"memory": {"ring": "1MB"}}, ValueError, "memory has no option 'ring': there are mode, "),
            ({"memory": "8MB"}, TypeError, "memory must be True, False or a dict of options, not str"),
            ({"calls": 1}, TypeError, "calls must be True, False or a dict of options, not int"),
            ({"buffer": "much"}, ValueError, 'buffer must be a size like "64MB"'),
            ({"dump_on": ["sunset"]}, ValueError, "dump_on may hold"),
            ({"memory": {"mode": "aggregate"}, "ring": 5}, ValueError, "ring keeps the last events"),
            ({"calls": {"min_duration": "1 parsec"}}, ValueError, "min_duration must be a time"),
        ]:
            with self.subTest(options), self.assertRaisesRegex(kind, re.escape(text)):
                stackweave.record(self.path, **options)
        self.assertEqual(self.files(), [])

    def test_one_at_a_time(self):
        other = os.path.join(self.folder, "other.swv")
        for first in (stackweave.trace, stackweave.memory, stackweave.record):
            with first(self.path, overwrite=True):
                second = stackweave.record(other)
                with self.assertRaisesRegex(
                    stackweave.StackweaveError, "is on, and there can be one .*: stop it first"
                ):
                    second.start()
                self.assertEqual(second.state, "new")
        for second in (stackweave.trace, stackweave.memory):
            with self.record(), self.assertRaisesRegex(stackweave.StartError, "<stackweave.CombinedRecorder .* is on"):
                second(other).start()
        with stackweave.trace(self.path, overwrite=True), stackweave.record(other, calls=False):
            leaf()
        self.assertEqual(self.files(), ["other.swv", "out.swv"])

    def test_one_that_could_not_begin_leaves_nothing(self):
        other = stackweave._native.AllocationHooks
        stackweave._native.AllocationHooks = None
        try:
            with self.assertRaises(TypeError):
                self.record().start()
        finally:
            stackweave._native.AllocationHooks = other
        self.assertEqual(self.files(), [])
        with self.record() as record:
            leaf()
        self.assertEqual(calls_of(record, "leaf"), 1)


class Life(RunCase):
    def test_pause_and_resume(self):
        with self.record() as record:
            before = self.take(SIZE)
            leaf()
            record.pause()
            self.give(before)
            unseen = self.take(3 * SIZE)
            leaf()
            record.resume()
            leaf()
            kept = self.take(5 * SIZE)
        for block in (unseen, kept):
            self.give(block)
        self.assertEqual(calls_of(record, "leaf"), 2)
        self.assertEqual(bytes_of_library(record.recording.leaks()), 5 * SIZE, "a free in a pause is known")
        self.assertEqual(figures_of_library(record)["bytes"], 6 * SIZE)

    def test_start_and_stop(self):
        record = self.record()
        self.assertEqual(record.state, "new")
        self.assertIs(record.start(), record)
        leaf()
        summary = record.stop()
        self.assertEqual((summary.lost, summary.error), ({}, None))
        self.assertEqual(record.stop(), summary)
        with self.assertRaises(stackweave.StackweaveError):
            record.start()
        self.assertEqual(calls_of(record, "leaf"), 1)

    def test_a_ring_keeps_the_last_of_both(self):
        with self.record(ring="100KB") as record:
            for _ in range(30_000):
                leaf()
                self.give(self.take(SIZE))
            other = record.dump(os.path.join(self.folder, "then.swv"))
        for path in (self.path, other):
            opened = stackweave.open(path)
            self.assertLess(0, calls_of(opened, "leaf"))
            self.assertLess(calls_of(opened, "leaf"), 30_000)
            roles = {event.role for event in opened.events()}
            self.assertLessEqual({"begin", "end", "allocate", "free"}, roles)

    def test_dump_writes_what_is_known(self):
        with self.record() as record:
            kept = self.take(SIZE)
            leaf()
            self.assertEqual(record.dump(), self.path)
            opened = stackweave.open(self.path)
            self.assertEqual(bytes_of_library(opened.memory().leaks()), SIZE)
            self.assertEqual(calls_of(opened, "leaf"), 1)
        self.give(kept)

    def test_an_exception_leaves_an_instant_and_both(self):
        def fail():
            raise KeyError("gone")

        with self.assertRaises(KeyError), self.record() as record:
            kept = self.take(SIZE)
            fail()
        self.give(kept)
        (instant,) = [event for event in record.recording.events() if event.name == "unhandled exception"]
        self.assertEqual(instant.details["type"], "builtins.KeyError")
        self.assertEqual(calls_of(record, "fail"), 1)
        self.assertEqual(bytes_of_library(record.recording.leaks()), SIZE)
        self.assertEqual(calls_of(record, "dumps"), 0, "the code that records the exception is not in the program")

    def test_threads_have_their_names_and_figures(self):
        def work(number):
            for _ in range(number):
                leaf()
            kept.append(self.take(number * SIZE))

        kept = []
        with self.record() as record:
            threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in (1, 2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for block in kept:
            self.give(block)
        used = {row.thread_name: row.bytes for row in record.recording.leaks() if row.bytes in (SIZE, 2 * SIZE)}
        self.assertEqual(used, {"worker 1": SIZE, "worker 2": 2 * SIZE})
        called = {}
        for event in record.recording.events():
            if event.role == "begin" and (event.name or "").endswith("leaf"):
                called[event.thread_name] = called.get(event.thread_name, 0) + 1
        self.assertEqual(called, {"worker 1": 1, "worker 2": 2})
        spans = (event for event in record.recording.events() if event.role in ("begin", "end", "open", "resume"))
        self.assertEqual(Replay(spans).unfinished, {})

    def test_a_small_buffer_loses_no_events(self):
        with warnings.catch_warnings(), self.record(buffer="256KiB") as record:
            warnings.simplefilter("error")
            for _ in range(20_000):
                leaf()
                self.give(self.take(1000))
        self.assertEqual(calls_of(record, "leaf"), 20_000)
        self.assertEqual(figures_of_library(record)["allocations"], 20_000)

    def test_tags_and_blocks_are_known(self):
        with self.record() as record, stackweave.memory_tag("load"):
            kept = self.take(SIZE)
            self.assertIsNotNone(stackweave.allocation_traceback(kept))
        self.give(kept)
        self.assertEqual({row.tag for row in record.recording.leaks() if row.bytes == SIZE}, {"load"})
