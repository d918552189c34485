"""Our history of CUDA memory agrees with torch's own of the same run, event by event. These tests need a GPU."""

import contextlib
import io
import os
import subprocess
import threading
import unittest

from tests.support import PYTHON, ROOT
from tests.torch_cuda_support import (
    PROGRAM_SECONDS,
    CudaCase,
    allocs,
    block_at,
    empty,
    environment_with,
    needs_gpu,
    new_size,
    python_part,
)

#: The variable of the process that runs these tests again with expandable segments.
EXPANDABLE = "STACKWEAVE_TEST_EXPANDABLE"
MIB = 1 << 20


def actions(trace):
    return [entry["action"] for entry in trace]


def delayed_frees(trace):
    """Returns the addresses of blocks whose free was not completed immediately."""
    behind = [*trace[1:], None]
    return [
        entry["addr"]
        for entry, then in zip(trace, behind)
        if entry["action"] == "free_requested"
        and (then is None or (then["action"], then["addr"]) != ("free_completed", entry["addr"]))
    ]


@needs_gpu
class AgreementTest(CudaCase):
    """Each test allocates while both recorders run."""

    def test_tensors_and_views(self):
        import torch

        with self.both() as seen:
            sizes = (1, 511, 512, 513, 4096, MIB, MIB + 1, 10 * MIB, 21 * MIB)
            tensors = [empty(size) for size in sizes]
            views = [tensor[: len(tensor) // 2 + 1] for tensor in tensors]
            del tensors[2], tensors[4], tensors[-1]
            grown = [torch.cat([view, view]) for view in views]
            del views[3]
            seen.kept = (tensors, views, grown)
        of_torch, _ours = self.assert_agree(seen)
        self.assertGreaterEqual(actions(of_torch).count("alloc"), 2 * len(sizes))
        self.assertIn("free_completed", actions(of_torch))

    def test_frees_that_wait_for_another_stream(self):
        import torch

        # Later allocations reuse this memory: a request to the driver might wait for the work of a stream.
        side = torch.cuda.Stream()
        spare = empty(60 * MIB)
        with torch.cuda.stream(side):
            spare_of_side = empty(5 * MIB)
        del spare, spare_of_side
        with self.both() as seen:
            tensor = empty(8 * MIB)
            with torch.cuda.stream(side):
                torch.cuda._sleep(100_000_000)
            tensor.record_stream(side)
            del tensor
            while_it_waits = empty(3 * MIB)
            side.synchronize()
            behind = empty(3 * MIB + 512)
            # This free is not completed before the end: the state has the block as pending.
            pending = empty(6 * MIB)
            with torch.cuda.stream(side):
                of_side = empty(5 * MIB)
                torch.cuda._sleep(2_000_000_000)
            pending.record_stream(side)
            address = pending.data_ptr()
            del pending
            seen.kept = (side, while_it_waits, behind, of_side)
        of_torch, _ours = self.assert_agree(seen)
        self.assertEqual(len(delayed_frees(of_torch)), 2, "the work of the other stream was over too soon")
        self.assertEqual(block_at(seen.ours, address)["state"], "active_pending_free")
        self.assertGreater(len({entry["stream"] for entry in of_torch if entry["action"] == "alloc"}), 1)

    def test_released_segments(self):
        import torch

        with self.both() as seen:
            big, small = empty(64 * MIB), empty(1000)
            del big
            torch.cuda.empty_cache()
            big = empty(96 * MIB)
            seen.kept = (big, small)
            empty(40 * MIB)
            torch.cuda.empty_cache()
        of_torch, _ours = self.assert_agree(seen)
        if os.environ.get(EXPANDABLE):
            self.assertLessEqual({"segment_map", "segment_unmap"}, set(actions(of_torch)))
        else:
            self.assertLessEqual({"segment_alloc", "segment_free"}, set(actions(of_torch)))

    def test_a_pool_of_its_own(self):
        import torch

        with self.both() as seen:
            pool = torch.cuda.MemPool()
            with torch.cuda.use_mem_pool(pool):
                inside = [empty(3 * MIB), empty(700)]
                empty(2 * MIB)
            outside = empty(3 * MIB)
            seen.kept = (pool, inside, outside)
        of_torch, _ours = self.assert_agree(seen)
        ids = {tuple(segment["segment_pool_id"]) for segment in seen.ours["segments"]}
        self.assertIn(tuple(pool.id), ids)
        if "pool_id" in of_torch[0]:
            self.assertIn(tuple(pool.id), {tuple(entry["pool_id"]) for entry in of_torch})

    def test_a_captured_graph(self):
        import torch

        static = torch.zeros(256 * 1024, device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            (static * 2 + 1).sum()
        torch.cuda.synchronize()
        with self.both() as seen:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = (static * 2 + 1).sum()
            graph.replay()
            torch.cuda.synchronize()
            seen.kept = (graph, result)
        self.assert_agree(seen)
        self.assertEqual(float(result), static.numel())
        private = [segment for segment in seen.ours["segments"] if tuple(segment["segment_pool_id"]) != (0, 0)]
        self.assertNotEqual(private, [])

    def test_a_request_that_fails(self):
        import torch

        with self.both() as seen:
            before = empty(3 * MIB)
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(torch.OutOfMemoryError):
                empty(1 << 50)
            seen.kept = (before, empty(2 * MIB))
        of_torch, ours = self.assert_agree(seen, snapshots=False)
        self.assertEqual(actions(of_torch).count("oom"), 1)
        failed = next(entry for entry in ours if entry["action"] == "oom")
        self.assertGreaterEqual(failed["size"], 1 << 50)
        self.assertIn("test_a_request_that_fails", [name for _, _, name in python_part(failed["frames"])])

    def test_threads(self):
        together = threading.Barrier(8)
        kept = [None] * 8

        def work(number):
            together.wait(timeout=30)
            tensors = []
            for turn in range(200):
                tensors.append(empty(512 * (1 + (turn * 7 + number) % 40)))
                if turn % 3 == 2:
                    del tensors[turn % len(tensors)]
            kept[number] = tensors

        with self.both() as seen:
            threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=60)
            seen.kept = kept
        of_torch, _ours = self.assert_agree(seen)
        self.assertEqual(actions(of_torch).count("alloc"), 8 * 200 + 2)

    def test_training(self):
        import torch

        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        inputs = torch.rand(128, 256, device="cuda")

        def step():
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        step()
        torch.cuda.synchronize()
        with self.both() as seen:
            seen.kept = [step() for _ in range(3)]
        of_torch, _ours = self.assert_agree(seen)
        self.assertGreater(len(of_torch), 100)

    def test_snapshots_in_between(self):
        import torch

        with self.both() as seen:
            tensors = []
            for _ in range(3):
                tensors.append(empty(MIB))
                torch.cuda.memory._snapshot()
            torch.cuda.memory_snapshot()
            seen.kept = tensors
        of_torch, _ours = self.assert_agree(seen)
        self.assertGreaterEqual(actions(of_torch).count("snapshot"), 4)

    def test_metadata(self):
        import torch

        sizes = [new_size() for _ in range(4)]
        with self.both() as seen:
            tensors = [empty(sizes[0])]
            torch.cuda.memory._set_memory_metadata("forward")
            tensors.append(empty(sizes[1]))
            torch.cuda.memory._set_memory_metadata("backward")
            tensors.append(empty(sizes[2]))
            torch.cuda.memory._set_memory_metadata("")
            tensors.append(empty(sizes[3]))
            seen.kept = tensors
        of_torch, ours = self.assert_agree(seen)
        for size, expected in zip(sizes, ["", "forward", "backward", ""]):
            for trace in (of_torch, ours):
                self.assertEqual([entry.get("user_metadata", "") for entry in allocs(trace, size)], [expected], size)

    def test_existing_blocks(self):
        before = [empty(3 * MIB), empty(900), empty(5 * MIB)]
        with self.both() as seen:
            del before[1]
            seen.kept = (before, empty(2 * MIB))
        of_torch, _ours = self.assert_agree(seen)
        # The free of an earlier block is an event like any other.
        self.assertEqual([entry["size"] for entry in of_torch if entry["action"] == "free_requested"][1:], [900])

    def test_figures_of_the_device(self):
        import torch

        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        with self.cuda_memory() as memory:
            tensors = [empty(size) for size in (700, 3 * MIB, 30 * MIB)]
            del tensors[2]
            tensors.append(empty(10 * MIB))
            stats = torch.cuda.memory_stats()
        device = next(device for device in memory.recording.memory().devices() if device.device == 0)
        self.assertEqual(device.name, torch.cuda.get_device_name(0))
        self.assertEqual(device.peak.allocated, stats["requested_bytes.all.peak"])
        self.assertEqual(device.reserved_peak.reserved, stats["reserved_bytes.all.peak"])
        self.assertEqual(device.state.requested, stats["requested_bytes.all.current"])
        self.assertEqual(device.state.allocated, stats["allocated_bytes.all.current"])
        self.assertEqual(device.state.reserved, stats["reserved_bytes.all.current"])
        rows = [
            row
            for row in memory.recording.leaks(device=0)
            if any(frame.name == self._testMethodName for frame in row.stack)
        ]
        self.assertEqual(sum(row.bytes for row in rows), 700 + 13 * MIB)
        del tensors


@needs_gpu
class ExpandableSegmentsTest(unittest.TestCase):
    @unittest.skipIf(os.environ.get(EXPANDABLE), "this process runs them already")
    def test_all_tests_with_expandable_segments(self):
        conf = "expandable_segments:True"
        environment = {EXPANDABLE: "1", "PYTORCH_CUDA_ALLOC_CONF": conf, "PYTORCH_ALLOC_CONF": conf}
        done = subprocess.run(
            [PYTHON, "-X", "faulthandler", "-W", "ignore", "-m", "unittest", "-v", f"{__name__}.AgreementTest"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment_with(**environment),
            timeout=PROGRAM_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-8000:])
        self.assertNotIn("skipped", done.stderr)


if __name__ == "__main__":
    unittest.main()
