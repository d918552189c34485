"""The comparison in the tests on a GPU finds every difference. These tests need neither torch nor a GPU."""

import copy
import unittest

from tests.support import run_on_oldest_and_newest
from tests.torch_cuda_support import (
    FIRST_MARK,
    LAST_MARK,
    between_marks,
    block_at,
    block_stack_differences,
    names,
    python_part,
    segment_differences,
    stack_differences,
    trace_differences,
)

setUpModule = run_on_oldest_and_newest

FRAMES = [
    {"name": "c10::cuda::raw_alloc(unsigned long)", "filename": "/lib/libc10_cuda.so", "line": 123},
    {"name": "take", "filename": "/model.py", "line": 7},
    {"name": "_PyEval_EvalFrameDefault", "filename": "??", "line": 0},
    {"name": "<module>", "filename": "/model.py", "line": 9},
]


def event(action, addr, size, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "pool_id": (0, 0), **more}


def history():
    return [
        event("snapshot", 0, 4096),
        event("segment_alloc", 0x1000, 2 << 20, frames=FRAMES),
        event("alloc", 0x1000, FIRST_MARK, frames=FRAMES),
        event("alloc", 0x5000, 700, frames=FRAMES),
        {"action": "oom", "device_free": 10, "size": 1 << 50, "stream": 0, "pool_id": (0, 0)},
        event("snapshot", 0, 8192),
        event("free_requested", 0x5000, 700, frames=FRAMES),
        event("alloc", 0x5000, LAST_MARK, frames=FRAMES),
        event("free_requested", 0x5000, LAST_MARK),
    ]


def segment():
    return {
        "device": 0,
        "address": 0x1000,
        "total_size": 2048,
        "allocated_size": 512,
        "active_size": 1024,
        "requested_size": 900,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": FRAMES,
        "blocks": [
            {"address": 0x1000, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": FRAMES},
            {"address": 0x1200, "size": 512, "requested_size": 400, "state": "active_pending_free", "frames": []},
            {"address": 0x1400, "size": 1024, "requested_size": 3, "state": "inactive", "frames": []},
        ],
    }


class ComparisonTest(unittest.TestCase):
    def changed(self, change):
        ours = history()
        change(ours)
        return trace_differences(between_marks(history()), between_marks(ours))

    def test_events_of_the_recorders_themselves_do_not_count(self):
        self.assertEqual(self.changed(lambda ours: None), [])
        self.assertEqual(self.changed(lambda ours: ours.pop(0)), [])
        self.assertEqual(self.changed(lambda ours: ours.append(event("snapshot", 0, 0))), [])

    def test_snapshots_count_with_their_size(self):
        self.assertNotEqual(self.changed(lambda ours: ours[5].update(size=0)), [])
        self.assertNotEqual(self.changed(lambda ours: ours.pop(5)), [])

    def test_every_field_counts(self):
        for field, value in {"action": "free_completed", "addr": 1, "size": 1, "stream": 7, "pool_id": (0, 1)}.items():
            with self.subTest(field=field):
                self.assertNotEqual(self.changed(lambda ours: ours[3].update({field: value})), [])
        self.assertNotEqual(self.changed(lambda ours: ours[4].update(device_free=11)), [])

    def test_order_and_missing_events_count(self):
        self.assertNotEqual(self.changed(lambda ours: ours.insert(4, ours.pop(3))), [])
        found = self.changed(lambda ours: ours.pop(6))
        self.assertIn("torch has 6 events, we have 5", found[0])
        self.assertIn("free_requested", found[1])

    def test_pools_are_compared_where_torch_has_them(self):
        of_torch, ours = between_marks(history()), between_marks(history())
        for entry in of_torch:
            entry.pop("pool_id")
        self.assertEqual(trace_differences(of_torch, ours), [])

    def test_a_missing_mark_is_reported(self):
        with self.assertRaisesRegex(AssertionError, "0 marks of 12289 bytes"):
            between_marks(history()[3:])

    def test_python_frames_are_compared_by_plain_names(self):
        of_torch, ours = history(), history()
        self.assertEqual(python_part(FRAMES), [("/model.py", 7, "take"), ("/model.py", 9, "<module>")])
        ours[3]["frames"] = [{**frame} for frame in FRAMES]
        ours[3]["frames"][1]["name"] = "Model.step.<locals>.take"
        ours[3]["frames"][0]["name"] = "another native function"
        self.assertEqual(stack_differences(of_torch, ours), [])
        self.assertEqual(names(ours[3]["frames"])[:2], ["another native function", "take"])
        ours[3]["frames"][1]["line"] = 8
        self.assertEqual(len(stack_differences(of_torch, ours)), 1)

    def test_segments_are_compared_with_their_blocks(self):
        of_torch, ours = [segment()], [segment()]
        ours[0]["blocks"][2]["requested_size"] = 0
        self.assertEqual(segment_differences(of_torch, ours), [])
        for field in ("total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type"):
            changed = copy.deepcopy(ours)
            changed[0][field] = "other"
            self.assertEqual(len(segment_differences(of_torch, changed)), 1, field)
        for number, field in ((0, "requested_size"), (1, "state"), (2, "size"), (1, "address")):
            changed = copy.deepcopy(ours)
            changed[0]["blocks"][number][field] = 77
            self.assertNotEqual(segment_differences(of_torch, changed), [], field)
        self.assertIn("only torch", segment_differences(of_torch, [])[0])
        self.assertIn("only we", segment_differences([], ours)[0])

    def test_stacks_of_blocks_are_compared_where_torch_knows_them(self):
        of_torch, ours = [segment()], [segment()]
        self.assertEqual(block_stack_differences(of_torch, ours, history()), [])
        of_torch[0]["blocks"][0]["frames"] = []
        ours[0]["blocks"][0]["frames"] = FRAMES[:2]
        self.assertEqual(block_stack_differences(of_torch, ours, history()), [])
        of_torch[0]["blocks"][0]["frames"] = FRAMES
        self.assertEqual(len(block_stack_differences(of_torch, ours, history())), 1)
        self.assertEqual(len(block_stack_differences(of_torch, [], history())), 1)
        self.assertEqual(block_stack_differences(of_torch, ours, []), [], "the block was allocated before")

    def test_blocks_are_found_by_their_address(self):
        self.assertEqual(block_at({"segments": [segment()]}, 0x1200)["requested_size"], 400)
        without = segment()
        for block in without["blocks"]:
            del block["address"]
        self.assertEqual(block_at({"segments": [without]}, 0x1400)["state"], "inactive")
        with self.assertRaises(AssertionError):
            block_at({"segments": [without]}, 0x1300)


if __name__ == "__main__":
    unittest.main()
