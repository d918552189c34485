"""Shared by the tests of the memory recorder: a library that allocates memory, and the figures recorded for it."""

import atexit
import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
import unittest

import stackweave
from tests.recordings import RecordingCase

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "blocks.c")
LIBRARY = "blocks.so"
#: The first lines of each program that runs in its own process. Its second argument is the path of the library.
BEGIN = """
import ctypes, gc, os, signal, sys, threading, time, warnings
import stackweave

warnings.simplefilter("ignore", DeprecationWarning)
library = ctypes.CDLL(sys.argv[2])
library.take.restype = ctypes.c_void_p
library.take.argtypes = [ctypes.c_size_t]
library.give.argtypes = [ctypes.c_void_p]

def take(size):
    return library.take(size)

def memory(**options):
    return stackweave.memory(sys.argv[1], **options)
"""


class Count(ctypes.Structure):
    """The totals of the requests that churn() of the library has made."""

    names = ("allocations", "bytes", "frees", "live_blocks", "live_bytes", "peak_bytes")
    _fields_ = [(name, ctypes.c_uint64) for name in names]


@functools.cache
def library_path():
    if not shutil.which("cc"):
        raise unittest.SkipTest("there is no C compiler")
    folder = tempfile.mkdtemp(prefix="stackweave-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, LIBRARY)
    # Each function must have its own frame, so that tail calls and inlining are off.
    flags = ["-O1", "-g", "-fno-optimize-sibling-calls", "-fno-inline"]
    subprocess.run(["cc", "-shared", "-fPIC", *flags, "-o", path, SOURCE, "-pthread"], check=True)
    return path


@functools.cache
def library():
    loaded = ctypes.CDLL(library_path())
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, arguments in {
        "take": [size],
        "take_zeroed": [size, size],
        "resize": [pointer, size],
        "resize_array": [pointer, size, size],
        "take_posix": [size, size],
        "take_aligned": [size, size],
        "take_memaligned": [size, size],
        "take_pages": [size],
        "take_whole_pages": [size],
        "map": [size],
        "remap": [pointer, size, size],
        "churn": [ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(Count)],
    }.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, pointer
    loaded.give.argtypes = loaded.free_churned.argtypes = [pointer]
    loaded.unmap.argtypes = [pointer, size]
    loaded.take_in_other_thread.argtypes = [ctypes.POINTER(pointer), size, size]
    return loaded


def of_library(usage):
    """Returns the rows of blocks that the library has allocated."""
    return [row for row in usage if any(frame.module == LIBRARY for frame in row.stack)]


def bytes_of_library(usage):
    return sum(row.bytes for row in of_library(usage))


def views_of(source):
    """Returns the views of a recorder, live while it records. Returns a source that has views itself as it is."""
    if not isinstance(source, stackweave.Recorder):
        return source
    return source.live() if source.state in ("recording", "paused") else source.recording.memory()


def figures_of_library(memory):
    """Returns the sums of the figures of all stacks of the library."""
    rows = [
        row
        for row in views_of(memory)._memory_device(None)["rows"]
        if row["stack"] is not None and any(frame.module == LIBRARY for frame in row["stack"].frames)
    ]
    fields = ("allocations", "bytes", "live_blocks", "live_bytes", "peak_blocks", "peak_bytes")
    return {field: sum(row[field] for row in rows) for field in fields}


def by_allocator(usage):
    """Returns the bytes and blocks of the library, by allocator."""
    found = {}
    for row in of_library(usage):
        bytes_, blocks = found.get(row.allocator, (0, 0))
        found[row.allocator] = (bytes_ + row.bytes, blocks + row.blocks)
    return found


class MemoryCase(RecordingCase):
    """A test with memory recordings, and with a library that allocates memory."""

    def setUp(self):
        super().setUp()
        self.library = library()

    def memory(self, **options):
        memory = stackweave.memory(self.path, overwrite=True, **options)
        self.addCleanup(lambda: memory.state in ("recording", "paused") and memory.stop())
        return memory

    def take(self, size):
        return self.library.take(size)

    def give(self, block):
        self.library.give(block)

    def run_program(self, code, *arguments, **expected):
        """Runs a script as run_script() does, with BEGIN before it."""
        return self.run_script(BEGIN + code, library_path(), *arguments, **expected)


def column_values(column, code):
    """Returns the numbers of a column, with None where there is none."""
    values = memoryview(ctypes.string_at(*column.values)).cast(code).tolist()
    bits = column.valid and ctypes.string_at(*column.valid)
    return [value if bits is None or bits[index // 8] >> index % 8 & 1 else None for index, value in enumerate(values)]


def history_frames(stacks, stack):
    """Returns the names and kinds of the frames of a stack of memory_stacks(), innermost first."""
    rows = {name: column_values(stacks[name], "I") for name in ("stack", "callers", "frame")}
    callers_and_frame = dict(zip(rows["stack"], zip(rows["callers"], rows["frame"])))
    found = []
    while stack:
        stack, frame = callers_and_frame[stack]
        found.append((stacks["names"][frame].rpartition(".")[2], stacks["kinds"][frame]))
    return found
