"""The claims of PyTorch's own tests about memory snapshots hold for ours, and its viewer reads them. Needs a GPU."""

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


def allocate_block(size):
    """Allocates memory. Stacks of the allocation have this function as the caller of empty()."""
    return empty(size)


def free(tensors):
    tensors.clear()


def release():
    torch.cuda.empty_cache()


def events(trace, action, size):
    return [entry for entry in trace if entry["action"] == action and entry["size"] == size]


def as_it_is(text):
    """Replaces the program that draws a flame graph."""
    return text


@needs_gpu
class SnapshotTest(CudaCase):
    def test_segments_and_blocks_have_the_stacks_of_their_allocations(self):
        torch.cuda.empty_cache()
        with self.cuda_memory() as memory:
            # It does not fit into existing segments, so torch reserves one.
            kept = allocate_block(311 * 21 * MIB // 10)
        snapshot = exported(memory)
        address = kept.data_ptr()
        block = block_at(snapshot, address)
        self.assertEqual(functions(block["frames"])[:2], ["empty", "allocate_block"])
        segment = next(segment for segment in snapshot["segments"] if segment["address"] == address)
        self.assertEqual(functions(segment["frames"])[:2], ["empty", "allocate_block"])
        for key in ("device", "total_size", "allocated_size", "active_size", "stream", "segment_type", "blocks"):
            self.assertIn(key, segment)
        self.assertEqual(segment["segment_type"], "large")
        self.assertEqual(segment["total_size"], sum(block["size"] for block in segment["blocks"]))
        self.assertTrue(any(not is_python(frame) for frame in block["frames"]))

    def test_the_last_event_releases_the_segment(self):
        with self.cuda_memory() as memory:
            kept = [allocate_block(100 * MIB)]
            address = kept[0].data_ptr()
            free(kept)
            release()
        snapshot = exported(memory)
        real = [entry for entry in trace_of(snapshot) if entry["action"] != "snapshot"]
        self.assertIn(real[-1]["action"], ("segment_free", "segment_unmap"))
        self.assertNotIn(address, [segment["address"] for segment in snapshot["segments"]])

    def test_a_free_has_the_stack_that_frees(self):
        size = new_size()
        with self.cuda_memory() as memory:
            free([allocate_block(size)])
        trace = trace_of(exported(memory))
        for action in ("free_requested", "free_completed"):
            (entry,) = events(trace, action, size)
            self.assertEqual(functions(entry["frames"])[0], "free", action)

    def test_without_stacks_of_frees_a_free_has_the_stack_of_the_allocation(self):
        size = new_size()
        with self.cuda_memory(free_stacks=False) as memory:
            free([allocate_block(size)])
        trace = trace_of(exported(memory))
        (entry,) = events(trace, "free_requested", size)
        self.assertEqual(functions(entry["frames"])[:2], ["empty", "allocate_block"])

    def test_a_released_segment_has_the_stack_that_released_it(self):
        with self.cuda_memory() as memory:
            free([allocate_block(100 * MIB)])
            release()
        trace = trace_of(exported(memory))
        released = [entry for entry in trace if entry["action"] in ("segment_free", "segment_unmap")]
        self.assertNotEqual(released, [])
        self.assertIn("release", functions(released[-1]["frames"]))

    def test_blocks_from_before_a_pause_keep_their_stacks(self):
        sizes = [new_size(), new_size()]
        with self.cuda_memory() as memory:
            kept = [allocate_block(sizes[0])]
            memory.pause()
            memory.resume()
            kept.append(allocate_block(sizes[1]))
        trace = trace_of(exported(memory))
        self.assertEqual([len(allocs(trace, size)) for size in sizes], [1, 1])
        self.assertEqual(functions(the_alloc(trace, sizes[0])["frames"])[:2], ["empty", "allocate_block"])

    def test_tags_of_ours_are_metadata(self):
        sizes = [new_size() for _ in range(3)]
        with self.cuda_memory() as memory:
            kept = [allocate_block(sizes[0])]
            with stackweave.memory_tag("forward"):
                kept.append(allocate_block(sizes[1]))
            kept.append(allocate_block(sizes[2]))
        trace = trace_of(exported(memory))
        found = [the_alloc(trace, size).get("user_metadata", "") for size in sizes]
        self.assertEqual(found, ["", "forward", ""])

    def test_every_entry_has_what_the_viewer_reads(self):
        with self.cuda_memory() as memory:
            kept = [allocate_block(3 * MIB), allocate_block(900)]
            free(kept)
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
            kept = [allocate_block(30 * MIB), allocate_block(700)]
            free([allocate_block(25 * MIB)])
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(torch.OutOfMemoryError):
                empty(1 << 50)
            release()
        snapshot = exported(memory)
        flames = _memory_viz.memory(snapshot, format_flamegraph=as_it_is)
        self.assertRegex(flames, r"stream_0;active_allocated;.*:allocate_block;.*:empty.* 31457280\n")
        segments = _memory_viz.segments(snapshot, format_flamegraph=as_it_is)
        self.assertRegex(segments, r"stream_0;seg_\d+;active_allocated;.*:allocate_block")
        listed = _memory_viz.trace(snapshot)
        self.assertRegex(listed, r"= \S+\[\d+:30\.0MiB\]")
        self.assertRegex(listed, r"del \w+ # 25\.0MiB")
        self.assertRegex(
            listed, r"raise OutOfMemoryError # 1\.0PiB requested|raise OutOfMemoryError # 1024\.0TiB requested"
        )
        self.assertRegex(listed, r"cudaMalloc|segment_map")
        summary = _memory_viz.segsum(snapshot)
        self.assertIn(f"segments: {len(snapshot['segments'])}\n", summary)
        for page in (_memory_viz.trace_plot(snapshot), _memory_viz.segment_plot(snapshot)):
            self.assertIn("add_local_files", page)
        self.assertIn("add_local_files", _memory_viz.trace_plot(snapshot, plot_segments=True))
        del kept

    def test_two_snapshots_are_compared(self):
        with self.cuda_memory() as memory:
            free([allocate_block(2 * MIB)])
            before = exported(memory)
            kept = allocate_block(200 * MIB)
        after = exported(memory)
        # compare() also prints addresses to standard output.
        with contextlib.redirect_stdout(io.StringIO()):
            text = _memory_viz.compare(before["segments"], after["segments"], format_flamegraph=as_it_is)
        self.assertRegex(text, r"only_after;stream_0;seg_\d+;active_allocated;.*:allocate_block")
        del kept

    def test_what_is_not_freed_has_its_stack(self):
        size = new_size()
        with self.cuda_memory() as memory:
            kept = allocate_block(size)
            free([allocate_block(new_size())])
        rows = [row for row in memory.recording.leaks(device=0) if row.bytes == size]
        self.assertEqual(len(rows), 1)
        found = [frame.name for frame in rows[0].stack if frame.kind == "python"]
        self.assertEqual(found[:2], ["empty", "allocate_block"])
        del kept


if __name__ == "__main__":
    unittest.main()
