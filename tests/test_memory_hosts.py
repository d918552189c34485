"""The recording of the package has the blocks that a host reports to its own copy of Stackweave."""

import atexit
import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
import unittest

import stackweave
from stackweave import _native
from tests.recordings import RecordingCase
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "host_copy.c")


@functools.cache
def folder():
    path = tempfile.mkdtemp(prefix="stackweave-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def build(name):
    path = os.path.join(folder(), f"{name}.so")
    flags = ["-O1", "-g", "-fno-optimize-sibling-calls", "-fno-inline"]
    subprocess.run(["cc", "-shared", "-fPIC", *flags, "-o", path, SOURCE, "-ldl"], check=True)
    return path


def load(path):
    host = ctypes.CDLL(path)
    host.device_allocate.argtypes = host.device_reserve.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64]
    host.device_release.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64]
    host.device_free.argtypes = [ctypes.c_uint64, ctypes.c_int64]
    host.join.argtypes = [ctypes.c_void_p]
    return host


def work(host):
    host.device_reserve(0x10_0000, 1 << 20, 0)
    for number in range(100):
        host.device_allocate(0x10_0000 + 64 * number, 64, 0)
    host.device_allocate(0x10_0000, 4096, 1)
    for number in range(60):
        host.device_free(0x10_0000 + 64 * number, 0)
    host.device_release(0x20_0000, 4096, 0)


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Hosts(RecordingCase):
    def check(self, memory):
        self.assertEqual([device.device for device in memory.devices()][:2], [0, 1])
        totals = memory.totals(device=0)
        figures = (totals.allocations, totals.bytes, totals.frees, totals.live_blocks, totals.live_bytes)
        self.assertEqual(figures, (100, 6400, 60, 40, 2560))
        self.assertEqual((totals.peak_bytes, totals.unknown_frees), (6400, 0))
        self.assertEqual(memory.totals(device=1).live_bytes, 4096)
        (row,) = memory.leaks(device=0).rows
        names = [frame.name for frame in row.stack]
        self.assertEqual(names[0], "device_allocate", "the innermost frame is the function that reported the block")
        self.assertIn("work", names)

    def test_a_host_that_was_loaded_before_is_recorded(self):
        host = load(build("before"))
        work(host)
        self.assertEqual(host.has_sink(), 0)
        with stackweave.memory(self.path):
            self.assertEqual(host.has_sink(), 1)
            work(host)
        self.assertEqual(host.has_sink(), 0)
        work(host)
        self.check(stackweave.open(self.path).memory())

    def test_a_host_that_is_loaded_later_finds_the_recorder(self):
        path = build("later")
        module = ctypes.CDLL(_native.__file__)
        with stackweave.memory(self.path):
            host = load(path)
            host.join(module._handle)
            self.assertEqual(host.has_sink(), 1)
            work(host)
        self.assertEqual(host.has_sink(), 0, "the host is notified of the end")
        host.join(module._handle)
        self.assertEqual(host.has_sink(), 0, "there is no recorder")
        self.check(stackweave.open(self.path).memory())

    def test_while_another_copy_records_this_one_does_not(self):
        # The sink is only compared with null: no host reports a block meanwhile.
        room = ctypes.create_string_buffer(16)
        sink = ctypes.c_void_p(ctypes.addressof(room))
        set_sink = ctypes.CDLL(_native.__file__).stackweave_set_memory_sink
        self.assertEqual(set_sink(sink, None), 0)
        try:
            with self.assertRaisesRegex(stackweave.StartError, "another copy of Stackweave in this process"):
                stackweave.memory(self.path).start()
        finally:
            self.assertEqual(set_sink(None, sink), 0)
        with stackweave.memory(self.path, overwrite=True):
            pass


if __name__ == "__main__":
    unittest.main()
