"""Recordings of memory are read by time, as a curve, and as a history."""

import os
import tempfile
import unittest

import stackweave
from tests.memory_support import column_values, history_frames
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

_ALL = {"process": None, "thread": None, "start": None, "end": None}
_ANY = {"tag": None, "device": None, "temporary": None}


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "blocks.swv")

    def record(self):
        """Records a block that is freed, one that is not, and one at the address of another."""
        with stackweave.Recorder(self.path) as recording:
            recording.allocation(0x1000, 100)
            recording.instant("between")
            recording.allocation(0x2000, 1000)
            recording.free(0x2000)
            recording.allocation(0x1000, 7)
            recording.free(0x9000)
        return stackweave.open(self.path)

    def native(self):
        self.record()
        return stackweave._native.OpenedRecording([self.path])

    def test_figures_are_those_of_the_events(self):
        memory = self.native().memory(_ALL, _ANY)
        self.assertEqual((memory["source"], memory["mode"], memory["sample_every"]), ("replayed", None, None))
        (device,) = memory["devices"]
        totals = device["totals"]
        self.assertEqual(device["device"], -1)
        self.assertEqual((totals["allocations"], totals["bytes"], totals["frees"]), (3, 1107, 1))
        self.assertEqual((totals["live_bytes"], totals["peak_bytes"], totals["peak_blocks"]), (7, 1100, 2))
        self.assertEqual((totals["unknown_frees"], totals["replaced"], totals["temporary_bytes"]), (1, 1, 1000))
        self.assertEqual(sum(row["peak_bytes"] for row in device["rows"]), 1100)
        self.assertEqual({row["allocator"] for row in device["rows"]}, {"allocate"})
        sizes = [(size["most"], size["allocations"]) for size in device["sizes"]]
        self.assertEqual(sizes, [(8, 1), (128, 1), (1024, 1)])
        self.assertEqual([process["pid"] for process in device["processes"]], [os.getpid()])

    def test_stacks_are_named_on_request(self):
        (device,) = self.native().memory(_ALL, _ANY)["devices"]
        for row in device["rows"]:
            stack = row["stack"]
            self.assertEqual(len(stack), len(stack.frames))
            self.assertIn("record", [frame.name for frame in stack.frames])
            self.assertEqual(len(stack.format()), len(stack))
            self.assertEqual(str(stack), "\n".join(stack.format()))
        stacks = {row["stack"] for row in device["rows"]}
        opened_again = stackweave._native.OpenedRecording([self.path])
        others = {row["stack"] for row in opened_again.memory(_ALL, _ANY)["devices"][0]["rows"]}
        self.assertEqual(len(stacks), 3)
        self.assertFalse(stacks & others)

    def test_a_part_of_the_time_has_its_own_peak(self):
        opened = self.record()
        (between,) = [event.time for event in opened.events() if event.name == "between"]
        before, after = opened.memory(end=between), opened.memory(start=between)
        self.assertEqual([before.peak().bytes, before.current().bytes], [100, 100])
        self.assertEqual([after.peak().bytes, after.current().bytes], [1100, 7])
        self.assertEqual([before.leaks().bytes, after.leaks().bytes], [100, 7])
        (middle,) = [
            event.time for event in opened.events() if event.role == "free" and event.values["address"] == 0x2000
        ]
        part = opened.memory(start=between, end=middle)
        self.assertEqual([part.current().bytes, part.leaks().bytes], [1100, 1000])
        self.assertEqual(after.source, "replayed")

    def test_the_limit_of_temporary_blocks_can_be_chosen(self):
        opened = self.record()
        self.assertEqual(opened.memory(temporary=0).temporary().bytes, 1000)

    def test_the_curve_is_computed_from_events_if_none_was_recorded(self):
        opened = self.record()
        curve = opened.memory().timeline()
        self.assertEqual([heap for _, _, heap in curve if heap][:1], [100])
        self.assertEqual((max(heap for _, _, heap in curve), curve[-1][2]), (1100, 7))
        self.assertTrue(all(rss is None for _, rss, _ in curve))
        self.assertEqual(sorted(curve), curve)

    def test_the_history_has_a_row_for_each_block(self):
        native = self.native()
        history = native.memory_history(_ALL, _ANY)

        def column(name, code):
            return column_values(history[name], code)

        self.assertEqual(column("size", "Q"), [100, 1000, 7])
        self.assertEqual(column("address", "Q"), [0x1000, 0x2000, 0x1000])
        time, freed = column("time", "d"), column("freed_at", "d")
        self.assertEqual(time, sorted(time))
        self.assertEqual(freed[0], time[2])
        self.assertTrue(time[1] <= freed[1] <= time[2] and freed[2] is None)
        self.assertEqual((column("device", "q"), column("process", "I")), ([-1] * 3, [os.getpid()] * 3))
        self.assertEqual([history["allocators"][number] for number in column("allocator", "I")], ["allocate"] * 3)
        self.assertEqual((column("tag", "I"), history["tags"]), ([None] * 3, []))
        stacks = native.memory_stacks(_ALL, _ANY)
        for stack in column("stack", "I"):
            self.assertIn("record", [name for name, _ in history_frames(stacks, stack)])

    def test_measures_of_memory_are_those_of_trees(self):
        opened = self.record()
        totals = {measure: opened.tree(measure=measure).total for measure in ("peak", "live", "temporary", "bytes")}
        self.assertEqual(totals, {"peak": 1100, "live": 7, "temporary": 1000, "bytes": 1107})
        self.assertEqual(opened.tree(measure="peak").measure, "peak")

    def test_a_recording_without_memory_has_nothing(self):
        with stackweave.Recorder(self.path) as recording:
            recording.begin("span")
            recording.end()
        memory = stackweave.open(self.path).memory()
        self.assertEqual((memory.peak().bytes, memory.timeline()), (0, []))


if __name__ == "__main__":
    unittest.main()
