"""A memory recording can be started, paused, queried, exported and stopped in any order."""

import os

import stackweave
from tests.memory_support import MemoryCase, bytes_of_library, figures_of_library, of_library
from tests.support import run_on_oldest_and_newest
from tests.test_export import report
from tests.test_memory_api import MEGABYTE

setUpModule = run_on_oldest_and_newest


class Order(MemoryCase):
    def test_live_figures_equal_those_of_the_file(self):
        for options in ({}, {"mode": "aggregate"}, {"ring": "1MB"}, {"python_allocators": True}):
            with self.subTest(**options):
                memory = self.memory(**options).start()
                with stackweave.memory_tag("kept"):
                    # Larger than the memory that the queries need, so that the queries do not change the peak.
                    blocks = [self.take(50 * MEGABYTE) for _ in range(4)]
                self.give(blocks.pop())
                live = [
                    self.rows(usage)
                    for usage in (memory.live().peak(), memory.live().leaks(), memory.live().temporary())
                ]
                memory.stop()
                read = [
                    self.rows(usage)
                    for usage in (
                        memory.recording.peak(),
                        memory.recording.leaks(),
                        memory.recording.memory().temporary(),
                    )
                ]
                self.assertEqual(read, live)
                self.assertEqual(live[1][0][:2], (150 * MEGABYTE, 3))
                opened = stackweave.open(self.path).memory()
                self.assertEqual(self.rows(opened.leaks()), live[1])
                for block in blocks:
                    self.give(block)

    def rows(self, usage):
        """Returns the rows of the library: bytes, blocks, tag, and the names on the stack."""
        rows = [(row.bytes, row.blocks, row.tag, [frame.name for frame in row.stack]) for row in of_library(usage)]
        return sorted(rows, key=repr)

    def test_a_recording_can_be_exported_before_its_end(self):
        for options in ({}, {"ring": "1MB"}):
            with self.subTest(**options), self.memory(**options) as memory:
                block = self.take(MEGABYTE)
                path = os.path.join(self.folder, "now.folded")
                memory.recording.export(path, measure="live", overwrite=True)
                with open(path) as file:
                    lines = [line for line in file if "test_a_recording_can_be_exported_before_its_end" in line]
                self.assertGreaterEqual(sum(int(line.split()[-1]) for line in lines), MEGABYTE)
                self.give(block)

    def test_it_can_be_exported_after_its_end(self):
        with self.memory() as memory:
            self.give(self.take(MEGABYTE))
        path = memory.recording.export(os.path.join(self.folder, "peak.svg"))
        with open(path) as file:
            self.assertIn("test_it_can_be_exported_after_its_end", file.read())

    def test_a_report_has_the_same_sums(self):
        with self.memory() as memory:
            blocks = [self.take(MEGABYTE) for _ in range(3)]
            self.give(blocks.pop())
        head, _ = report(memory.recording.export(os.path.join(self.folder, "memory.html")))
        totals = {}
        for tree in head["trees"]:
            totals[tree["measure"]] = totals.get(tree["measure"], 0) + tree["total"]
        self.assertEqual(
            (totals["peak"], totals["live"]), (memory.recording.peak().bytes, memory.recording.leaks().bytes)
        )
        self.assertEqual(head["memory"]["devices"][0]["peak"]["bytes"], totals["peak"])
        for block in blocks:
            self.give(block)

    def test_many_recordings_after_each_other(self):
        for number in range(20):
            with self.memory() as memory:
                block = self.take(MEGABYTE + number)
            self.assertEqual(bytes_of_library(memory.recording.leaks()), MEGABYTE + number)
            self.give(block)

    def test_there_is_one_at_a_time(self):
        with self.memory():
            second = stackweave.memory(os.path.join(self.folder, "second.swv"))
            with self.assertRaisesRegex(stackweave.StartError, "there can be one at a time: stop it first"):
                second.start()
            self.assertEqual(second.state, "new")
            self.assertFalse(os.path.exists(os.path.join(self.folder, "second.swv")))
        with second:
            pass
        self.assertEqual(second.state, "stopped")

    def test_a_recording_starts_once(self):
        memory = self.memory().start()
        memory.stop()
        with self.assertRaisesRegex(stackweave.StateError, "can be started once"):
            memory.start()
        self.assertEqual(memory.stop(), memory.stop())

    def test_queries_before_the_start_are_errors(self):
        memory = self.memory()
        for query in (memory.live, lambda: memory.recording, memory.recorder_stats):
            with self.assertRaises(stackweave.StateError):
                query()
        self.assertEqual(repr(memory), f"<stackweave.MemoryRecorder {self.path!r}, new>")

    def test_a_pause(self):
        with self.memory() as memory:
            first = self.take(MEGABYTE)
            memory.pause()
            self.assertEqual(memory.state, "paused")
            second = self.take(2 * MEGABYTE)
            self.assertEqual(bytes_of_library(memory.live().current()), MEGABYTE)
            memory.resume()
            third = self.take(4 * MEGABYTE)
        self.assertEqual(bytes_of_library(memory.recording.leaks()), 5 * MEGABYTE)
        for block in (first, second, third):
            self.give(block)

    def test_it_may_be_stopped_while_it_is_paused(self):
        memory = self.memory().start()
        block = self.take(MEGABYTE)
        memory.pause()
        memory.stop()
        self.assertEqual(bytes_of_library(memory.recording.leaks()), MEGABYTE)
        self.give(block)

    def test_a_trace_at_the_same_time(self):
        def work():
            return self.take(MEGABYTE)

        traced = os.path.join(self.folder, "trace.swv")
        with self.memory() as memory, stackweave.trace(traced) as trace:
            block = work()
        self.assertEqual(bytes_of_library(memory.recording.leaks()), MEGABYTE)
        self.assertEqual({row.name.rpartition(".")[2]: row.calls for row in trace.recording.top(all=True)}["work"], 1)
        self.give(block)

    def test_an_existing_file_stays(self):
        with open(self.path, "w") as file:
            file.write("mine")
        with self.assertRaisesRegex(stackweave.StackweaveError, "out.swv"):
            stackweave.memory(self.path).start()
        with open(self.path) as file:
            self.assertEqual(file.read(), "mine")
        self.assertIsNone(stackweave.allocation_traceback(1), "there is no recorder")
        with self.memory():
            pass

    def test_spans_and_counters_can_be_recorded_beside_it(self):
        with self.memory() as memory:
            with stackweave.span("step"):
                stackweave.counter("loss", 1.0)
        names = {event.name for event in memory.recording.events() if event.role in ("begin", "counter")}
        self.assertLessEqual({"step", "loss"}, names)

    def test_the_recorder_reports_its_statistics(self):
        with self.memory() as memory:
            live = memory.recorder_stats()
        stats = memory.recorder_stats()
        for found in (live, stats):
            self.assertGreater(found["modules"], 0)
            self.assertGreater(found["slots"], 0)
            self.assertFalse(found["is_incomplete"])

    def test_looking_up_names_is_not_recorded(self):
        script = """
import json
with memory() as recorder:
    take(1_000_000)
    for _ in range(3):
        str(recorder.live().peak())
    print({group.name for group in recorder.live().threads()})
    print(any(frame.name == "__GI___realpath" for row in recorder.live().current() for frame in row.stack))
"""
        self.assertEqual(self.run_program(script), "{'MainThread'}\nFalse\n")

    def test_the_curve_has_both_lines(self):
        with self.memory(curve_every=0.001) as memory:
            block = self.take(50 * MEGABYTE)
            memory.flush()
            for _ in range(50):
                memory.instant("x")
                memory.flush()
            self.give(block)
        points = memory.recording.memory().timeline()
        self.assertEqual(points, sorted(points, key=lambda point: point[0]))
        self.assertGreaterEqual(max(heap or 0 for _, _, heap in points), 50 * MEGABYTE)
        self.assertGreater(max(rss or 0 for _, rss, _ in points), MEGABYTE)

    def test_the_events_are_there(self):
        with self.memory(free_stacks=True) as memory:
            block = self.take(1_234_567)
            self.give(block)
        allocated = [
            event
            for event in memory.recording.events()
            if event.role == "allocate" and event.values["size"] == 1_234_567
        ]
        self.assertEqual([(event.kind, int(event.values["address"])) for event in allocated], [("malloc", block)])
        freed = [
            event for event in memory.recording.events() if event.role == "free" and event.values["address"] == block
        ]
        self.assertIn("give", [frame.name for frame in freed[-1].stack])

    def test_the_history_as_a_table(self):
        try:
            import pandas
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow and pandas are not installed")
        with self.memory() as memory:
            with stackweave.memory_tag("kept"):
                kept = self.take(1_234_567)
            self.give(self.take(1_234_567))
        history = memory.recording.memory()
        table, frame = history.to_arrow(), history.to_pandas()
        self.assertIsInstance(table, pyarrow.Table)
        self.assertIsInstance(frame, pandas.DataFrame)
        columns = ["time", "freed_at", "address", "size", "allocator", "process", "thread", "device", "tag", "stack"]
        self.assertEqual((table.column_names, list(frame.columns)), (columns, columns))
        first, second = (row for row in table.to_pylist() if row["size"] == 1_234_567)
        self.assertEqual((first["address"], first["freed_at"], first["tag"]), (kept, None, "kept"))
        self.assertLess(second["time"], second["freed_at"])
        self.assertEqual((second["allocator"], second["tag"], second["process"]), ("malloc", None, os.getpid()))
        stacks = {row["stack"]: row for row in stackweave.open(self.path).memory().stacks_to_arrow().to_pylist()}
        innermost = stacks[second["stack"]]
        self.assertEqual((innermost["name"], innermost["kind"]), ("take", "native"))
        self.assertRegex(innermost["filename"], r"blocks\.c\Z")
        names, next_ = [], second["stack"]
        while next_ is not None:
            names.append(stacks[next_]["name"])
            next_ = stacks[next_]["callers"]
        self.assertEqual(len(names), innermost["depth"])
        of_events = [event for event in memory.recording.events() if event.values.get("address") == second["address"]]
        frames = [frame.qualname or frame.name for frame in of_events[-2].stack]
        self.assertEqual(names, frames)
        tagged = stackweave.open(self.path).memory(tag="kept").to_arrow().to_pylist()
        # A selection of the history has new numbers for its stacks.
        tagged = [{**row, "stack": first["stack"]} for row in tagged if row["size"] == 1_234_567]
        self.assertEqual(tagged, [first])
        self.give(kept)

    def test_a_table_stores_shared_frames_of_deep_stacks_once(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow is not installed")

        def dive(depth):
            kept.append(self.take(10_000))
            if depth > 0:
                dive(depth - 1)

        kept = []
        with self.memory() as memory:
            dive(200)
        for block in kept:
            self.give(block)
        history = memory.recording.memory()
        table, stacks = history.to_arrow(), history.stacks_to_arrow()
        rows = [row for row in table.to_pylist() if row["size"] == 10_000]
        self.assertEqual(len({row["stack"] for row in rows}), 201)
        # As texts, the stacks would have 200 * 200 / 2 frames and more.
        self.assertLess(len(stacks), 200 * 40)
        self.assertLess(stacks.nbytes, len(stacks) * 100)
        self.assertEqual(table.schema.field("stack").type, pyarrow.uint32())

    def test_a_recording_without_history_has_no_table(self):
        with self.memory(mode="aggregate") as memory:
            pass
        try:
            memory.recording.memory().to_arrow()
        except stackweave.StackweaveError as error:
            self.assertRegex(str(error), "has no history: figures for each stack only|needs pyarrow")
        else:
            self.fail("there is nothing to make a table of")

    def test_sampled_figures_are_estimates(self):
        with self.memory(mode="sampled", sample_every="100kB") as memory:
            blocks = [self.take(10_000) for _ in range(10_000)]
        leaks = memory.recording.leaks()
        self.assertTrue(leaks.is_estimate)
        self.assertAlmostEqual(bytes_of_library(leaks) / 1e8, 1, delta=0.2)
        self.assertAlmostEqual(figures_of_library(memory)["live_blocks"] / 1e4, 1, delta=0.2)
        for block in blocks:
            self.give(block)
