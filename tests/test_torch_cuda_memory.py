"""A recording of CUDA memory starts, runs and ends correctly. These tests need a GPU."""

import contextlib
import io
import os
import signal
import subprocess
import unittest
import warnings

import stackweave
from tests.support import PYTHON
from tests.torch_cuda_support import (
    CudaCase,
    allocs,
    block_at,
    empty,
    exported,
    needs_gpu,
    new_size,
    print_info,
    python_part,
    the_alloc,
    trace_of,
)

MIB = 1 << 20
#: The first lines of each separate program.
BEGIN = """
import faulthandler, os, signal, sys, threading
faulthandler.dump_traceback_later(50, exit=True)
import torch
import stackweave
import stackweave.torch

path = sys.argv[1]

def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")

"""
HELD_GIL = """
import ctypes
holding = ctypes.PyDLL(None)  # its calls do not release the GIL
over = threading.Event()

def hold():
    while not over.is_set():
        holding.usleep(500)

def query():
    while not over.is_set():
        torch.cuda.memory._snapshot()
        torch.cuda.memory_stats()

def allocate():
    for number in range(300):
        take(512 * (1 + number % 50))

def learn():
    weight = torch.ones(512, 512, device="cuda", requires_grad=True)
    for _ in range(20):
        (weight @ weight).square().sum().backward()

take(1)
with stackweave.torch.cuda_memory(path, buffer=sys.argv[2]) as memory:
    others = [threading.Thread(target=target, daemon=True) for target in (hold, query)]
    workers = [threading.Thread(target=target) for target in (allocate, allocate, allocate, allocate, learn)]
    for thread in [*others, *workers]:
        thread.start()
    for thread in workers:
        thread.join()
    over.set()
    for thread in others:
        thread.join()
    kept = take(77777)
print("done", memory.stop().lost)
"""
FORKS = """
before = take(70001)
with stackweave.torch.cuda_memory(path) as memory:
    kept = take(70002)
    for is_quick in (True, False):
        child = os.fork()
        if child == 0:
            kept_by_child = [[] for _ in range(1000)]
            if not is_quick:
                memory.stop()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
    more = take(70003)
print("done")
"""


@needs_gpu
class LifeTest(CudaCase):
    def opened(self):
        """Returns the history of device 0. The recording may be unfinished."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return trace_of(exported(stackweave.open(self.path)))

    def test_it_begins_in_the_middle(self):
        sizes = [new_size() for _ in range(3)]
        kept, freed = empty(sizes[0]), empty(sizes[1])
        address = freed.data_ptr()
        with self.cuda_memory() as memory:
            del freed
            later = empty(sizes[2])
        snapshot = exported(memory)
        trace = trace_of(snapshot)
        self.assertEqual([allocs(trace, size) for size in sizes[:2]], [[], []])
        self.assertEqual(the_alloc(trace, sizes[2])["addr"], later.data_ptr())
        freed_events = [
            entry["action"] for entry in trace if entry.get("addr") == address and entry["size"] == sizes[1]
        ]
        self.assertEqual(freed_events, ["free_requested", "free_completed"])
        block = block_at(snapshot, kept.data_ptr())
        self.assertEqual((block["state"], block["requested_size"]), ("active_allocated", sizes[0]))
        self.assertEqual(python_part(block["frames"]), [], "it was allocated before the recording")

    def test_it_begins_before_cuda_does(self):
        printed = self.run_file(
            BEGIN
            + """
memory = stackweave.torch.cuda_memory(path).start()
kept = take(70001)
memory.stop()
print("done", kept.data_ptr())
"""
        )
        trace = self.opened()
        self.assertEqual(the_alloc(trace, 70001)["addr"], int(printed.split()[1]))
        self.assertIn("take", [name for _, _, name in python_part(the_alloc(trace, 70001)["frames"])])
        self.assertIn("segment_alloc", [entry["action"] for entry in trace])

    def test_one_recording_after_another(self):
        sizes = [new_size() for _ in range(4)]
        found = []
        for number in (0, 2):
            with self.cuda_memory() as memory:
                empty(sizes[number])
            found.append(trace_of(exported(memory)))
            empty(sizes[number + 1])
        for number, trace in zip((0, 2), found):
            self.assertEqual([len(allocs(trace, size)) for size in sizes], [size == sizes[number] for size in sizes])

    def test_pause_and_resume(self):
        sizes = [new_size() for _ in range(4)]
        with self.cuda_memory() as memory:
            kept = [empty(sizes[0])]
            memory.pause()
            kept.append(empty(sizes[1]))
            empty(sizes[2])
            memory.resume()
            kept.append(empty(sizes[3]))
        snapshot = exported(memory)
        trace = trace_of(snapshot)
        self.assertEqual([len(allocs(trace, size)) for size in sizes], [1, 0, 0, 1])
        for tensor, size in zip(kept, (sizes[0], sizes[1], sizes[3])):
            self.assertEqual(block_at(snapshot, tensor.data_ptr())["requested_size"], size)

    def test_an_exception_passes(self):
        size = new_size()
        with self.assertRaisesRegex(ValueError, "of the program"):
            with self.cuda_memory() as memory:
                kept = empty(size)
                raise ValueError("of the program")
        self.assertEqual(memory.state, "stopped")
        empty(new_size())
        snapshot = exported(memory)
        self.assertEqual(the_alloc(trace_of(snapshot), size)["addr"], kept.data_ptr())
        self.assertEqual(block_at(snapshot, kept.data_ptr())["state"], "active_allocated")

    def test_a_second_recorder_of_memory_is_refused(self):
        with self.cuda_memory():
            with self.assertRaises(stackweave.StackweaveError):
                stackweave.memory(self.path + ".second").start()

    def test_the_memory_of_the_process_can_be_recorded_too(self):
        size = new_size()
        with self.cuda_memory(host_memory=True) as memory:
            kept = empty(size)
            own = bytearray(40 * MIB)
        self.assertEqual([row.bytes for row in memory.recording.leaks(device=0) if row.bytes == size], [size])
        self.assertGreaterEqual(memory.recording.peak().bytes, len(own))
        del kept

    def test_without_the_process_only_the_device_is_there(self):
        with self.cuda_memory() as memory:
            own = bytearray(40 * MIB)
        try:
            peak = memory.recording.peak().bytes
        except stackweave.StackweaveError:
            peak = 0
        self.assertLess(peak, len(own))

    def request_too_much(self):
        """Requests more memory than the device has, and returns what is printed to standard error."""
        import torch

        message = io.StringIO()
        with contextlib.redirect_stderr(message):
            with self.assertRaises(torch.OutOfMemoryError):
                empty(1 << 50)
        return message.getvalue()

    def assert_has_failed_request(self, snapshot, kept, size):
        """Asserts that a snapshot has the failed request and the blocks of that moment. Returns the requested size."""
        failed = [entry for entry in trace_of(snapshot) if entry["action"] == "oom"]
        self.assertEqual(len(failed), 1)
        self.assertGreaterEqual(failed[0]["size"], 1 << 50)
        self.assertEqual([name for _, _, name in python_part(failed[0]["frames"])][:2], ["empty", "request_too_much"])
        self.assertEqual(block_at(snapshot, kept.data_ptr())["requested_size"], size)
        return failed[0]["size"]

    def test_a_snapshot_is_written_when_memory_runs_out(self):
        size = new_size()
        with self.cuda_memory() as memory:
            kept = empty(size)
            message = self.request_too_much()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                snapshot = exported(stackweave.open(self.path))
        self.assertIn("out of memory", message)
        self.assertIn(self.path, message)
        requested = self.assert_has_failed_request(snapshot, kept, size)
        device = next(device for device in memory.recording.memory().devices() if device.device == 0)
        self.assertEqual([request.size for request in device.out_of_memory], [requested])

    def test_a_ring_is_dumped_when_memory_runs_out(self):
        size = new_size()
        with self.cuda_memory(ring="4MB"):
            kept = empty(size)
            message = self.request_too_much()
            (dump,) = self.other_recordings()
            self.assertIn(dump, message)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                snapshot = exported(stackweave.open(dump))
        self.assert_has_failed_request(snapshot, kept, size)

    def test_no_more_dumps_than_wanted(self):
        with self.cuda_memory(ring="4MB", oom_dumps=2):
            reported = [bool(self.request_too_much()) for _ in range(3)]
            self.assertEqual(len(self.other_recordings()), 2)
        self.assertEqual(reported, [True, True, False])

    def test_a_ring_is_bounded_in_bytes(self):
        ring = 1_000_000
        with self.cuda_memory(ring="1MB") as memory:
            churn(350_000)
            last = empty(new_size())
        trace = trace_of(exported(memory))
        size = os.path.getsize(self.path)
        print_info(f"{size:,} bytes of a ring of {ring:,}, {len(trace):,} events of a million")
        self.assertLess(size, 2 * ring)
        self.assertGreater(len(trace), 10_000)
        self.assertLess(len(trace), 1_050_000, "some events were discarded")
        self.assertEqual(trace[-1]["addr"], last.data_ptr())

    def test_a_million_events_stay_small(self):
        with self.cuda_memory() as memory:
            churn(350_000)
        size = os.path.getsize(self.path)
        print_info(f"{size:,} bytes of a million events, {size / 1_050_000:.1f} each")
        self.assertEqual(memory.stop().lost, {})
        self.assertLess(size, 10_000_000)

    def test_no_deadlock_with_the_gil_and_the_lock_of_the_device(self):
        # With a small buffer, events wait in the hook for the writer.
        for memory in ("8MiB", "64KB"):
            with self.subTest(memory=memory):
                self.assertEqual(self.run_file(BEGIN + HELD_GIL, memory), "done {}\n")
                trace = self.opened()
                self.assertEqual(len(allocs(trace, 77777)), 1)
                self.assertGreaterEqual(len([entry for entry in trace if entry["action"] == "alloc"]), 1200)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)

    def test_forks(self):
        self.assertEqual(self.run_file(BEGIN + FORKS), "done\n")
        trace = self.opened()
        self.assertEqual([len(allocs(trace, size)) for size in (70001, 70002, 70003)], [0, 1, 1])

    def test_a_program_that_just_ends(self):
        self.run_file(BEGIN + "stackweave.torch.cuda_memory(path).start()\nkept = take(70001)\n")
        snapshot = exported(stackweave.open(self.path))
        address = the_alloc(trace_of(snapshot), 70001)["addr"]
        self.assertEqual(block_at(snapshot, address)["state"], "active_allocated")

    def test_a_program_that_is_killed(self):
        code = """
memory = stackweave.torch.cuda_memory(path).start()
kept = take(70001)
memory.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
        self.run_file(BEGIN + code, status=-signal.SIGKILL)
        self.assertEqual(len(allocs(self.opened(), 70001)), 1)

    def test_the_command_exports_it(self):
        size = new_size()
        with self.cuda_memory():
            empty(size)
        out = os.path.join(self.folder, "out.pickle")
        command = [PYTHON, "-m", "stackweave", "export", self.path, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.getsize(out))


def churn(pairs):
    """Allocates and frees this many blocks in one line: three events each."""
    import torch

    place = torch.device("cuda")
    for _ in range(pairs):
        torch.empty(512, device=place)


if __name__ == "__main__":
    unittest.main()
