"""The views of the memory of devices, from the events that a host's allocator reports."""

import contextlib
import ctypes
import os
import subprocess
import unittest

import stackweave
from stackweave import _native
from stackweave._recorders.live_memory import BaseMemoryRecorder
from stackweave._recorders.memory_source import MemorySource
from tests.memory_support import views_of
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

ALLOC, FREE, SEGMENT, PRESENT, REQUESTED, COMPLETED, SEGMENT_PRESENT = 1, 2, 3, 5, 6, 7, 8
SEGMENT_UNMAP, OUT_OF_MEMORY, STATE_BEGIN, SEGMENT_STATE, BLOCK_STATE, STATE_END = 10, 12, 15, 16, 17, 18
MIB = 1 << 20
GRAPH = 1 << 63 | 3


class Block(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("device", ctypes.c_int64),
        ("stream", ctypes.c_uint64),
        ("pool", ctypes.c_uint64),
        ("text", ctypes.c_char_p),
        ("requested", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
    )


LIBRARY = ctypes.CDLL(_native.__file__)
LIBRARY.stackweave_record_host_event.argtypes = [ctypes.c_uint32, ctypes.POINTER(Block), ctypes.c_void_p]


def record_event(kind, address=0, size=0, **fields):
    block = Block(size=ctypes.sizeof(Block), address=address, bytes=size, **fields)
    assert LIBRARY.stackweave_record_host_event(kind, ctypes.byref(block), None) == 0


class HostMemory(BaseMemoryRecorder):
    """Records the events of hosts, and by default not the memory of the process."""

    __slots__ = ()

    def __init__(self, path, own_memory=False, **options):
        super().__init__(path, **options)
        self._native_options["extra"] = {"device.0.name": "Toy 9000", "device.0.total": str(64 * MIB)}
        self._memory_source = MemorySource({"mappings": own_memory}, own_memory=own_memory)
        self._sources = (self._memory_source,)


def allocate(address, size, **fields):
    record_event(ALLOC, address, size, **fields)


def request_too_much():
    record_event(OUT_OF_MEMORY, 36 * MIB, 60 * MIB)


def train():
    record_event(SEGMENT_PRESENT, 0x10_0000, 20 * MIB)
    record_event(PRESENT, 0x10_0000, 2 * MIB)
    allocate(0x40_0000, 5 * MIB)
    record_event(SEGMENT, 0x8000_0000, 8 * MIB, pool=GRAPH)
    allocate(0x8000_0000, 6 * MIB, pool=GRAPH)
    allocate(0x90_0000, 3 * MIB)
    record_event(REQUESTED, 0x90_0000, 3 * MIB)
    record_event(FREE, 0x8000_0000, 6 * MIB, pool=GRAPH)
    record_event(SEGMENT_UNMAP, 0x8000_0000, 4 * MIB, pool=GRAPH)


def record_state(reason):
    record_event(STATE_BEGIN, flags=reason)
    record_event(SEGMENT_STATE, 0x10_0000, 20 * MIB, flags=1)
    record_event(BLOCK_STATE, 0x10_0000, 8 * MIB, requested=7 * MIB, flags=3)
    record_event(BLOCK_STATE, 0x90_0000, 3 * MIB, requested=3 * MIB, flags=2)
    record_event(BLOCK_STATE, 0xC0_0000, 6 * MIB)
    record_event(BLOCK_STATE, 0x120_0000, 3 * MIB)
    record_event(STATE_END)


class Devices(RecordingCase):
    def check(self, source):
        (device,) = devices = views_of(source).devices()
        self.assertEqual((device.device, device.name, device.total), (0, "Toy 9000", 64 * MIB))
        self.assertEqual(device.process, os.getpid())
        self.assertEqual(device.peak[1:], (16 * MIB, 0, 28 * MIB))
        self.assertEqual((device.reserved, device.reserved_peak.allocated), (28 * MIB, 7 * MIB))
        self.assertEqual(device.points[-1][1:], (7 * MIB, 24 * MIB))
        self.assertEqual(max(allocated for _, allocated, _ in device.points), 16 * MIB)
        self.assertEqual([pool.name for pool in device.pools], ["default", "graph 3"])
        self.assertEqual(device.pools[1].peak[1:], (6 * MIB, 0, 8 * MIB))
        self.assertIn("device 0: Toy 9000, 64.0 MiB\n  peak        16.0 MiB in use, 28.0 MiB reserved", str(devices))
        self.assertEqual(repr(device), "<stackweave.DeviceMemory 0: peak 16.0 MiB, reserved up to 28.0 MiB>")
        return device

    def test_blocks_segments_and_pools_while_it_records_and_afterwards(self):
        with HostMemory(self.path) as memory:
            train()
            self.check(memory)
        self.check(memory)
        opened = stackweave.open(self.path).memory()
        device = self.check(opened)
        self.assertIsNone(device.state)
        self.assertEqual(device.out_of_memory, [])

    def test_the_first_device_is_the_default_without_memory_of_the_process(self):
        def check(source):
            memory = views_of(source)
            self.assertEqual(memory.peak().bytes, 16 * MIB)
            self.assertEqual(memory.totals()[:7], memory.totals(device=0)[:7])
            self.assertEqual((memory.current().bytes, memory.current().blocks), (7 * MIB, 2))
            leaks = memory.leaks()
            self.assertEqual((leaks.bytes, leaks.blocks, len(leaks.rows)), (5 * MIB, 1, 1), "without earlier memory")
            names = [frame.name for frame in leaks.rows[0].stack if frame.kind == "python"]
            self.assertEqual(names[:2], ["record_event", "allocate"])
            before = [row for row in memory.current().rows if row.allocator == "host-present"]
            self.assertEqual([row.stack[0].name for row in before], ["allocated before the recording"])
            self.assertNotIn("host-", str(memory.peak()))
            with self.assertRaisesRegex(stackweave.StackweaveError, "device 1"):
                memory.peak(device=1)

        with HostMemory(self.path) as memory:
            train()
            check(memory)
        check(memory)
        check(stackweave.open(self.path).memory())
        part = stackweave.open(self.path).memory(start=0)
        self.assertEqual((part.source, part.leaks().bytes), ("replayed", 5 * MIB))

    def test_the_process_s_own_memory_comes_first(self):
        with HostMemory(self.path, own_memory=True) as memory:
            train()
            kept = bytearray(MIB)
            self.assertGreaterEqual(memory.live().current().bytes, MIB)
            self.assertEqual(memory.live().peak(device=0).bytes, 16 * MIB)
        self.assertNotEqual(memory.recording.peak(), memory.recording.peak(device=0))
        self.check(memory)
        del kept

    def test_a_device_that_was_exhausted(self):
        with HostMemory(self.path) as memory:
            train()
            request_too_much()
            record_state(1)
            during = memory.live().devices()[0]
        device = memory.recording.memory().devices()[0]
        self.assertEqual((during.state.free, len(during.out_of_memory)), (9 * MIB, 1))
        (failed,) = device.out_of_memory
        self.assertEqual((failed.size, failed.free, failed.pool), (60 * MIB, 36 * MIB, 0))
        names = [frame.name for frame in failed.frames if frame.kind == "python"]
        self.assertEqual(names[:2], ["record_event", "request_too_much"])
        state = device.state
        self.assertEqual((state.reason, state.segments, state.blocks), ("out of memory", 1, 4))
        self.assertEqual((state.reserved, state.allocated, state.requested), (20 * MIB, 8 * MIB, 7 * MIB))
        self.assertEqual((state.pending, state.free, state.largest_free), (3 * MIB, 9 * MIB, 6 * MIB))
        self.assertEqual((round(state.fragmentation, 3), state.rounding), (0.333, MIB))
        self.assertEqual(state.pools, [(0, 20 * MIB, 8 * MIB, 9 * MIB)])
        text = str(device)
        self.assertIn("9.00 MiB of 20.0 MiB in 1 segment when a request failed, 33.3% fragmented", text)
        self.assertIn("60.0 MiB requested, 36.0 MiB free\n    by ", text)
        self.assertIn("    by request_too_much  tests/test_memory_devices.py", text)

    def test_a_part_of_the_time(self):
        with HostMemory(self.path) as memory:
            train()
            middle = memory.live().devices()[0].points[-1][0]
            allocate(0x200_0000, 30 * MIB)
        before, after = (stackweave.open(self.path).memory(**part) for part in ({"end": middle}, {"start": middle}))
        self.assertEqual([part.devices()[0].peak.allocated for part in (before, after)], [16 * MIB, 37 * MIB])

    def test_there_may_be_no_devices(self):
        with stackweave.memory(self.path) as memory, contextlib.suppress(ValueError):
            int("no number")
        self.assertEqual(memory.recording.memory().devices(), [])
        self.assertEqual(str(memory.recording.memory().devices()), "no memory of devices")

    def test_the_command_shows_it(self):
        with HostMemory(self.path):
            train()
            request_too_much()

        def output_of(*arguments):
            command = [PYTHON, "-m", "stackweave", *arguments, self.path]
            return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=120).stdout

        heap = output_of("heap")
        self.assertIn("Device 0  Toy 9000, 64.0 MiB", heap)
        self.assertIn("from before 2.00 MiB in 1 block", heap)
        self.assertIn("request_too_much test_memory_devices.py", heap)
        self.assertIn("train", output_of("top"))


if __name__ == "__main__":
    unittest.main()
