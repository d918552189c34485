"""What PyTorch's own tests ask of its memory snapshots, asked of ours, and its viewer on them. Needs a GPU."""

import contextlib
import io
import unittest

import stackweave
from tests.torch_cuda_support import (
    HAS_GPU,
    CudaCase,
    allocs,
    block_at,
    empty,
    exported,
    is_python,
    needs_gpu,
    new_size,
    python_part,
    the_alloc,
    trace_of,
)

if HAS_GPU:
    import torch
    from torch.cuda import _memory_viz

MIB = 1 << 20


def functions(frames):
    return [name for _, _, name in python_part(frames)]


def ask_for(size):
    """The innermost function of ours that takes memory."""
    return empty(size)


def let_go(tensors):
    tensors.clear()


def give_back():
    torch.cuda.empty_cache()


def events(trace, action, size):
    return [entry for entry in trace if entry["action"] == action and entry["size"] == size]


def as_it_is(text):
    """In place of the program that draws a flame graph of it."""
    return text


@needs_gpu
class SnapshotTest(CudaCase):
    def test_segments_and_blocks_have_the_stacks_that_took_them(self):
        torch.cuda.empty_cache()
        with self.cuda_memory() as memory:
            # More than fits into what is there, so that a segment is taken for it.
            kept = ask_for(311 * 21 * MIB // 10)
        snapshot = exported(memory)
        address = kept.data_ptr()
        block = block_at(snapshot, address)
        self.assertEqual(functions(block["frames"])[:2], ["empty", "ask_for"])
        segment = next(segment for segment in snapshot["segments"] if segment["address"] == address)
        self.assertEqual(functions(segment["frames"])[:2], ["empty", "ask_for"])
        for key in ("device", "total_size", "allocated_size", "active_size", "stream", "segment_type", "blocks"):
            self.assertIn(key, segment)
        self.assertEqual(segment["segment_type"], "large")
        self.assertEqual(segment["total_size"], sum(block["size"] for block in segment["blocks"]))
        self.assertTrue(any(not is_python(frame) for frame in block["frames"]))

    def test_the_last_event_gives_the_segment_back(self):
        with self.cuda_memory() as memory:
            kept = [ask_for(100 * MIB)]
            address = kept[0].data_ptr()
            let_go(kept)
            give_back()
        snapshot = exported(memory)
        real = [entry for entry in trace_of(snapshot) if entry["action"] != "snapshot"]
        self.assertIn(real[-1]["action"], ("segment_free", "segment_unmap"))
        self.assertNotIn(address, [segment["address"] for segment in snapshot["segments"]])

    def test_a_free_has_the_stack_that_frees(self):
        size = new_size()
        with self.cuda_memory() as memory:
            let_go([ask_for(size)])
        trace = trace_of(exported(memory))
        for action in ("free_requested", "free_completed"):
            (entry,) = events(trace, action, size)
            self.assertEqual(functions(entry["frames"])[0], "let_go", action)

    def test_without_stacks_of_frees_it_has_that_of_the_allocation(self):
        size = new_size()
        with self.cuda_memory(free_stacks=False) as memory:
            let_go([ask_for(size)])
        trace = trace_of(exported(memory))
        (entry,) = events(trace, "free_requested", size)
        self.assertEqual(functions(entry["frames"])[:2], ["empty", "ask_for"])

    def test_a_segment_given_back_has_the_stack_that_did_it(self):
        with self.cuda_memory() as memory:
            let_go([ask_for(100 * MIB)])
            give_back()
        given = [entry for entry in trace_of(exported(memory)) if entry["action"] in ("segment_free", "segment_unmap")]
        self.assertNotEqual(given, [])
        self.assertIn("give_back", functions(given[-1]["frames"]))

    def test_what_was_kept_before_a_pause_is_there_behind_it(self):
        sizes = [new_size(), new_size()]
        with self.cuda_memory() as memory:
            kept = [ask_for(sizes[0])]
            memory.pause()
            memory.resume()
            kept.append(ask_for(sizes[1]))
        trace = trace_of(exported(memory))
        self.assertEqual([len(allocs(trace, size)) for size in sizes], [1, 1])
        self.assertEqual(functions(the_alloc(trace, sizes[0])["frames"])[:2], ["empty", "ask_for"])

    def test_tags_of_ours_are_metadata(self):
        sizes = [new_size() for _ in range(3)]
        with self.cuda_memory() as memory:
            kept = [ask_for(sizes[0])]
            with stackweave.memory_tag("forward"):
                kept.append(ask_for(sizes[1]))
            kept.append(ask_for(sizes[2]))
        trace = trace_of(exported(memory))
        found = [the_alloc(trace, size).get("user_metadata", "") for size in sizes]
        self.assertEqual(found, ["", "forward", ""])

    def test_every_entry_has_what_the_viewer_reads(self):
        with self.cuda_memory() as memory:
            kept = [ask_for(3 * MIB), ask_for(900)]
            let_go(kept)
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(torch.OutOfMemoryError):
                empty(1 << 50)
        snapshot = exported(memory)
        self.assertLessEqual({"segments", "device_traces", "allocator_settings", "external_annotations"}, set(snapshot))
        times = []
        for entry in trace_of(snapshot):
            place = "device_free" if entry["action"] == "oom" else "addr"
            self.assertLessEqual({"action", place, "size", "stream", "time_us"}, set(entry))
            times.append(entry["time_us"])
            for frame in entry.get("frames", []):
                self.assertEqual(set(frame), {"name", "filename", "line"})
                self.assertIsInstance(frame["line"], int)
        self.assertEqual(times, sorted(times))

    def test_the_viewer_reads_it(self):
        with self.cuda_memory() as memory:
            kept = [ask_for(30 * MIB), ask_for(700)]
            let_go([ask_for(25 * MIB)])
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(torch.OutOfMemoryError):
                empty(1 << 50)
            give_back()
        snapshot = exported(memory)
        flames = _memory_viz.memory(snapshot, format_flamegraph=as_it_is)
        self.assertRegex(flames, r"stream_0;active_allocated;.*:ask_for;.*:empty.* 31457280\n")
        segments = _memory_viz.segments(snapshot, format_flamegraph=as_it_is)
        self.assertRegex(segments, r"stream_0;seg_\d+;active_allocated;.*:ask_for")
        listed = _memory_viz.trace(snapshot)
        self.assertRegex(listed, r"= \S+\[\d+:30\.0MiB\]")
        self.assertRegex(listed, r"del \w+ # 25\.0MiB")
        self.assertRegex(
            listed, r"raise OutOfMemoryError # 1\.0PiB requested|raise OutOfMemoryError # 1024\.0TiB requested"
        )
        self.assertRegex(listed, r"cudaMalloc|segment_map")
        account = _memory_viz.segsum(snapshot)
        self.assertIn(f"segments: {len(snapshot['segments'])}\n", account)
        for page in (_memory_viz.trace_plot(snapshot), _memory_viz.segment_plot(snapshot)):
            self.assertIn("add_local_files", page)
        self.assertIn("add_local_files", _memory_viz.trace_plot(snapshot, plot_segments=True))
        del kept

    def test_two_snapshots_are_compared(self):
        with self.cuda_memory() as memory:
            let_go([ask_for(2 * MIB)])
            before = exported(memory)
            kept = ask_for(200 * MIB)
        after = exported(memory)
        # It says the addresses on its own.
        with contextlib.redirect_stdout(io.StringIO()):
            text = _memory_viz.compare(before["segments"], after["segments"], format_flamegraph=as_it_is)
        self.assertRegex(text, r"only_after;stream_0;seg_\d+;active_allocated;.*:ask_for")
        del kept

    def test_what_is_not_freed_has_its_stack(self):
        size = new_size()
        with self.cuda_memory() as memory:
            kept = ask_for(size)
            let_go([ask_for(new_size())])
        rows = [row for row in memory.recording.leaks(device=0) if row.bytes == size]
        self.assertEqual(len(rows), 1)
        found = [frame.name for frame in rows[0].stack if frame.kind == "python"]
        self.assertEqual(found[:2], ["empty", "ask_for"])
        del kept


if __name__ == "__main__":
    unittest.main()
