"""Shared by the tests of CUDA memory: builds a fake torch with an allocator and no device, and the hook for it."""

import atexit
import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
import types
import unittest

import stackweave
from stackweave.torch._cuda import build as cuda_build

NATIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "fake_torch")
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
    "annotate",
)
#: The kinds of recorded events by their numbers, with torch's name where it has one.
KINDS = dict(
    enumerate(
        (
            *("alloc", "free", "segment_alloc", "segment_free", "present", "free_requested", "free_completed"),
            *("segment_present", "segment_map", "segment_unmap", "snapshot", "oom", "annotate", "tag"),
            *("state_begin", "segment_state", "block_state", "state_end"),
        ),
        1,
    )
)
STATES = {"state_begin", "segment_state", "block_state", "state_end"}
PRESENT = {"present", "segment_present"}


class Event(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("action", "device")),
        *((name, ctypes.c_uint64) for name in ("address", "size", "stream", "pool")),
    ]


class RecordedEvent(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("kind", "has_stack_address")),
        *((name, ctypes.c_uint64) for name in ("address", "bytes")),
        ("device", ctypes.c_int64),
        *((name, ctypes.c_uint64) for name in ("stream", "pool", "requested", "flags")),
        ("text", ctypes.c_char * 64),
    ]


class FakeDevices:
    """Controls the fake allocator from Python."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        #: Calls of this library hold the GIL.
        self.held = ctypes.PyDLL(path)
        for library in (self.library, self.held):
            number = ctypes.c_uint64
            library.fake_allocate.argtypes = [ctypes.c_int, number, number, number]
            library.fake_allocate.restype = number
            library.fake_free.argtypes = [ctypes.c_int, number]
            library.fake_use_on.argtypes = [ctypes.c_int, number, number]
            library.fake_limit.argtypes = [ctypes.c_int, number]
            if hasattr(library, "fake_annotate"):
                library.fake_annotate.argtypes = [ctypes.c_int, number, ctypes.c_char_p]
            library.fake_text.argtypes = [ctypes.c_char_p]
            for name in ("fake_events", "fake_recorded_events"):
                getattr(library, name).restype = ctypes.c_size_t
                getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def allocate(self, size, device=0, stream=0, pool=0):
        return self.library.fake_allocate(device, size, stream, pool)

    def free(self, address, device=0):
        self.library.fake_free(device, address)

    def events(self):
        """Returns the events of all devices in their order, with their values."""
        return [
            (ACTIONS[event.action], event.device, event.address, event.size, event.stream, event.pool)
            for event in self._all("fake_events", Event)
        ]

    def recorded_events(self):
        return self._all("fake_recorded_events", RecordedEvent)

    def _all(self, function, kind):
        copy_events = getattr(self.library, function)
        found = (kind * copy_events(None, 0))()
        copy_events(found, len(found))
        return list(found)


def summary(event):
    return (KINDS[event.kind], event.device, event.address, event.bytes, event.stream, event.pool)


def build_torch(folder, *flags):
    """Builds a folder like that of torch, and one beside it like that of CUDA. Returns the first."""
    compiler = cuda_build.find_compiler()
    if not compiler:
        raise unittest.SkipTest("there is no C++ compiler")
    torch = os.path.join(folder, "torch")
    shutil.copytree(os.path.join(NATIVE, "include"), os.path.join(torch, "include"))
    os.mkdir(os.path.join(torch, "lib"))
    shutil.copy(os.path.join(NATIVE, "torch_stand_in.py"), os.path.join(torch, "__init__.py"))
    cuda = os.path.join(folder, "nvidia", "cu13", "include")
    os.makedirs(cuda)
    with open(os.path.join(cuda, "cuda_runtime_api.h"), "w") as file:
        file.write("#define CUDART_VERSION 13000\n")
    # Without sibling calls each function keeps its own frame.
    options = ["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-fno-optimize-sibling-calls", *flags]
    includes = [f"-I{stackweave.get_include()}", f"-I{os.path.join(torch, 'include')}"]
    for name, source in {"c10": os.devnull, "c10_cuda": os.path.join(NATIVE, "stand_in.cpp")}.items():
        output = os.path.join(torch, "lib", f"lib{name}.so")
        subprocess.run([*compiler, *options, *includes, "-x", "c++", source, "-o", output, "-pthread"], check=True)
    return torch


@functools.cache
def fake_torch(*flags):
    folder = tempfile.mkdtemp(prefix="stackweave-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return build_torch(folder, *flags)


def torch_module(folder):
    """Returns a stand-in for the module torch, with the attributes that a build needs."""
    return types.SimpleNamespace(
        __file__=os.path.join(folder, "__init__.py"),
        __version__="0.0.0+fake",
        version=types.SimpleNamespace(cuda="13.0", hip=None),
    )


@functools.cache
def fake_hook(*flags):
    """Returns the devices, and the library of the hook, which passes its events to them instead of to a recorder."""
    folder = fake_torch(*flags)
    output = os.path.join(folder, "hook.so")
    compiler = [*cuda_build.find_compiler(), *flags]
    subprocess.run(cuda_build.command_of(torch_module(folder), compiler, "c++17", output), check=True)
    devices = FakeDevices(os.path.join(folder, "lib", "libc10_cuda.so"))
    return devices, output
