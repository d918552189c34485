"""The hook for CUDA's memory builds and works with the headers of the real torch. No device is needed."""

import contextlib
import io
import os
import subprocess
import unittest
from unittest import mock

import stackweave
from stackweave import StackweaveError
from stackweave.torch._cuda import build as cuda_build
from stackweave.torch._cuda import cache as cuda_cache
from stackweave.torch._cuda.hook import CudaHook
from stackweave.torch._cuda.memory import CudaMemoryRecorder
from tests.cuda_support import NATIVE
from tests.recordings import RecordingCase
from tests.torch_dynamo_support import HAS_TORCH

#: Replaces torch's allocator by the fake one, and compares the recorded events with those that happened.
PROGRAM = """
import ctypes, sys
import torch
from stackweave.torch._cuda.hook import CudaHook
from tests.cuda_support import PRESENT, STATES, FakeDevices, summary

devices = FakeDevices(sys.argv[2])
hook = CudaHook(sys.argv[3])
devices.library.fake_install()
devices.library.fake_init(2)
assert hook.is_ready()
before = devices.allocate(1000, 1)
devices.library.fake_forget_events()
hook._call("attach", ctypes.cast(devices.library.fake_record, ctypes.c_void_p))
hook.begin()
devices.library.fake_text(b"forward")
blocks = [(number % 2, devices.allocate(number * 1000 + 1, number % 2, 8, number % 3)) for number in range(200)]
devices.library.fake_text(b"")
devices.library.fake_use_on(0, blocks[0][1], 9)
for device, address in blocks:
    devices.free(address, device)
devices.library.fake_streams_are_done(0)
devices.library.fake_empty_cache(0)
devices.library.fake_limit(0, 1 << 20)
devices.allocate(1 << 30)
hook.end(with_state=True)
recorded = [summary(event) for event in devices.recorded_events()]
ours = {*PRESENT, *STATES, "tag"}
happened = [event for event in devices.events() if event[0] != "snapshot"]
assert [event for event in recorded if event[0] not in ours] == happened, (recorded, happened)
first = [("segment_present", 1, before, 2 << 20, 0, 0), ("present", 1, before, 1000, 0, 0)]
assert recorded[:2] == first, recorded[:2]
names = [event[0] for event in recorded]
rows = names[names.index("state_begin") :]
assert (rows[1], rows[-1]) == ("segment_state", "state_end") and set(rows) == STATES, rows
tags = [event.text for event in devices.recorded_events() if summary(event)[0] == "tag"]
assert tags == [b"forward", b""], tags
devices.library.fake_forget_events()
if hasattr(torch._C, "_cuda_memoryMetadataSupported"):
    hook.begin()
    devices.library.fake_annotate(1, before, b"weights")
    (annotation,) = [event for event in devices.recorded_events() if event.text]
    assert (summary(annotation)[0], annotation.address, annotation.text) == ("annotate", before, b"weights")
print(len(happened))
"""
#: Records that allocator. The program replaces torch's functions that need a driver.
RECORDED = """
import ctypes, sys
import torch
import stackweave.torch
from stackweave.torch._cuda.memory import CudaMemoryRecorder
from tests.cuda_support import FakeDevices

devices = FakeDevices(sys.argv[2])
devices.library.fake_install()
devices.library.fake_init(2)
torch.cuda.device_count = lambda: 2
observers = []

def observe(call):
    size = ctypes.c_size_t
    observers.append(ctypes.CFUNCTYPE(None, ctypes.c_int64, size, size, size)(call))
    devices.library.fake_observe(observers[-1])

torch._C._cuda_attach_out_of_memory_observer = observe

def forward():
    return devices.allocate(1000, 1)

with CudaMemoryRecorder(sys.argv[1]):
    kept = forward()
    devices.library.fake_limit(0, 4 << 20)
    assert devices.allocate(8 << 20) == 0
"""


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Builds(RecordingCase):
    @classmethod
    def setUpClass(cls):
        global torch
        import torch

        if torch.version.cuda is None:
            raise unittest.SkipTest("this torch was built without CUDA")
        if not cuda_build.find_compiler():
            raise unittest.SkipTest("there is no C++ compiler")

    def setUp(self):
        super().setUp()
        changed = mock.patch.dict(os.environ, {cuda_cache.CACHE: self.folder})
        changed.start()
        self.addCleanup(changed.stop)

    def built(self):
        message = io.StringIO()
        with contextlib.redirect_stderr(message):
            return cuda_build.built_library(torch), message.getvalue()

    def test_it_is_built_once_and_records_what_an_allocator_does(self):
        path, message = self.built()
        self.assertRegex(
            message, r"^stackweave: \S+ builds the CUDA hook for torch \S+, once\nstackweave: it took .* s, "
        )
        self.assertEqual(self.built(), (path, ""))
        self.assertEqual(os.listdir(self.folder), [os.path.basename(path)])
        devices = os.path.join(self.folder, "devices.so")
        command = cuda_build.command_of(torch, cuda_build.find_compiler(), cuda_build.STANDARDS[0], devices)
        command[command.index(cuda_build.SOURCE)] = os.path.join(NATIVE, "real.cpp")
        subprocess.run([*command, "-O1", "-w"], check=True)
        self.assertGreater(int(self.run_script(PROGRAM, devices, path)), 400)
        self.run_script(RECORDED, devices, stderr="stackweave: CUDA device 0 is out of memory: 8.00 MiB .*\\n")
        events = [event for event in stackweave.open(self.path).events() if event.kind.startswith("host-")]
        kinds = [event.kind for event in events if event.kind not in ("host-state", "host-present")]
        self.assertEqual(kinds, ["host-allocate", "host-out-of-memory"])
        self.assertEqual([event.values["reason"] for event in events if event.kind == "host-state"][::2], [1, 0])
        (allocated,) = [event for event in events if event.kind == "host-allocate"]
        names = [frame.name for frame in allocated.stack if frame.kind == "python"]
        self.assertEqual(names, ["allocate", "forward", "<module>"])

    def test_it_loads_and_waits_for_devices(self):
        hook = CudaHook(self.built()[0])
        if torch.cuda.is_available():
            self.skipTest("there are devices")
        self.assertFalse(hook.is_ready())
        with self.assertRaisesRegex(StackweaveError, "the allocator is not initialized"):
            hook.attach()

    def test_without_a_device_nothing_is_recorded(self):
        if torch.cuda.is_available():
            self.skipTest("there are devices")
        with self.assertRaisesRegex(StackweaveError, "torch finds no CUDA device here"):
            CudaMemoryRecorder(self.path).start()
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
