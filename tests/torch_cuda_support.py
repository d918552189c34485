"""Shared by the tests of CUDA memory: runs both recorders around the same work, and compares what they recorded."""

import contextlib
import gc
import glob
import importlib.util
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from tests.recordings import RecordingCase, recording_of
from tests.support import PYTHON, ROOT

#: Sizes that no other allocation has. Both histories are cut there: other events belong to the recorders themselves.
FIRST_MARK, LAST_MARK = 12_289, 12_801
#: The time limit of a separate program, in seconds. It imports torch and initializes CUDA.
PROGRAM_SECONDS = 100
_sizes = itertools.count(100_003, 1024)


def has_gpu():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


HAS_GPU = has_gpu()
needs_gpu = unittest.skipUnless(HAS_GPU, "there is no GPU that torch can use")


def new_size():
    """Returns a number of bytes that no other allocation of these tests requests."""
    return next(_sizes)


def empty(size):
    """Allocates memory of the GPU."""
    import torch

    return torch.empty(size, dtype=torch.uint8, device="cuda")


def is_python(frame):
    """Returns whether a frame of a snapshot is a Python frame, judged by its file: the format has no field for that."""
    return frame["filename"].endswith(".py") or frame["filename"].startswith("<")


def python_part(frames):
    """Returns file, line and plain name of the Python frames, innermost first. Our own names are qualified."""
    return [
        (frame["filename"], frame["line"], frame["name"].rpartition(".")[2]) for frame in frames if is_python(frame)
    ]


def expected_part(extracted):
    """Returns the same for a result of traceback.extract_stack()."""
    return [(frame.filename, frame.lineno, frame.name) for frame in reversed(extracted)]


def names(frames):
    """Returns the plain names of all functions of a stack, innermost first. Native names stay as they are."""
    return [frame["name"].rpartition(".")[2] if is_python(frame) else frame["name"] for frame in frames]


def event_fields(entry, with_pool=True):
    """Returns the fields of an event that both recorders must agree on."""
    action = entry["action"]
    if action == "snapshot":
        return (action, entry["size"])
    place = entry["device_free"] if action == "oom" else entry["addr"]
    fields = (action, place, entry["size"], entry["stream"])
    return (*fields, tuple(entry.get("pool_id", ()))) if with_pool else fields


def between_marks(trace, first=FIRST_MARK, last=LAST_MARK):
    """Returns the events from the first mark to the last, including both."""
    places = {size: [place for place, entry in enumerate(trace) if is_alloc(entry, size)] for size in (first, last)}
    for size, found in places.items():
        if len(found) != 1:
            raise AssertionError(f"{len(found)} marks of {size} bytes among {len(trace)} events: {short(trace)}")
    return trace[places[first][0] : places[last][0] + 1]


def is_alloc(entry, size):
    return entry["action"] == "alloc" and entry["size"] == size


def allocs(trace, size):
    return [entry for entry in trace if is_alloc(entry, size)]


def the_alloc(trace, size):
    """Returns the only allocation of this size."""
    found = allocs(trace, size)
    if len(found) != 1:
        raise AssertionError(f"{len(found)} allocations of {size} bytes among {len(trace)} events: {short(trace)}")
    return found[0]


def short(trace, limit=12):
    shown = [f"{entry['action']} {entry['size']}" for entry in trace[-limit:]]
    return ", ".join(["...", *shown] if len(trace) > limit else shown)


def trace_differences(of_torch, ours):
    """Returns sentences about the first difference of two histories; none if they are the same."""
    with_pool = any("pool_id" in entry for entry in of_torch)
    their_fields = [event_fields(entry, with_pool) for entry in of_torch]
    our_fields = [event_fields(entry, with_pool) for entry in ours]
    found = []
    if len(their_fields) != len(our_fields):
        found.append(f"torch has {len(their_fields)} events, we have {len(our_fields)}")
    for place, pair in enumerate(itertools.zip_longest(their_fields, our_fields)):
        if pair[0] != pair[1]:
            found.append(f"event {place}: torch has {pair[0]}, we have {pair[1]}")
            around = slice(max(place - 2, 0), place + 4)
            found.append(f"torch around it: {their_fields[around]}")
            found.append(f"we around it: {our_fields[around]}")
            break
    return found


def stack_differences(of_torch, ours, actions=("alloc", "free_requested")):
    """Returns a sentence about the first event whose Python frames differ. Torch's other actions have older stacks."""
    for place, (their, our) in enumerate(zip(of_torch, ours)):
        if their["action"] in actions and "frames" in their:
            expected, found = python_part(their["frames"]), python_part(our.get("frames", []))
            if expected != found:
                return [f"event {place}, {event_fields(their, False)}: torch has {expected}, we have {found}"]
    return []


def segment_of(segment):
    """Returns what both must agree on for a segment and its blocks. Inactive blocks have no requested size here."""
    blocks = []
    address = segment["address"]
    for block in segment["blocks"]:
        is_active = block["state"] != "inactive"
        blocks.append(
            (block.get("address", address), block["size"], block["state"], block["requested_size"] * is_active)
        )
        address += block["size"]
    fields = (
        "device",
        "address",
        "total_size",
        "allocated_size",
        "active_size",
        "requested_size",
        "stream",
        "segment_type",
    )
    return {
        **{field: segment[field] for field in fields},
        "segment_pool_id": tuple(segment.get("segment_pool_id", (0, 0))),
        "is_expandable": bool(segment.get("is_expandable")),
        "blocks": blocks,
    }


def segment_differences(of_torch, ours):
    """Returns sentences about the differences of two states of the allocator."""
    found = []
    of_torch = {(segment["device"], segment["address"]): segment_of(segment) for segment in of_torch}
    ours = {(segment["device"], segment["address"]): segment_of(segment) for segment in ours}
    found += [f"only torch has segment {place}: {of_torch[place]}" for place in sorted(of_torch.keys() - ours.keys())]
    found += [f"only we have segment {place}: {ours[place]}" for place in sorted(ours.keys() - of_torch.keys())]
    for place in sorted(of_torch.keys() & ours.keys()):
        for field, expected in of_torch[place].items():
            if ours[place][field] != expected:
                found.append(f"segment {place}, {field}: torch has {expected}, we have {ours[place][field]}")
    return found[:6]


def block_stacks(segments):
    """Returns the Python frames of blocks in use whose stack is known, by address."""
    found = {}
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and block.get("frames"):
                found[block.get("address", address)] = python_part(block["frames"])
            address += block["size"]
    return found


def block_stack_differences(of_torch, ours, trace):
    """Returns sentences about blocks whose stack differs from torch's. Only blocks allocated in this history count."""
    ours = block_stacks(ours)
    allocated = {entry["addr"] for entry in trace if entry["action"] == "alloc"}
    return [
        f"block at {address:#x}: torch has {expected}, we have {ours.get(address)}"
        for address, expected in block_stacks(of_torch).items()
        if address in allocated and ours.get(address) != expected
    ][:3]


def block_at(snapshot, address):
    """Returns the block at an address of a snapshot."""
    for segment in snapshot["segments"]:
        place = segment["address"]
        for block in segment["blocks"]:
            if block.get("address", place) == address:
                return block
            place += block["size"]
    raise AssertionError(f"no block at {address:#x} in {len(snapshot['segments'])} segments")


def print_info(text):
    """Prints a fact that no test asserts."""
    print(f"info: {text}", file=sys.stderr)


def read_pickle(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def exported(recording, **options):
    """Returns the snapshot that PyTorch's viewer reads, exported from a recording with all frames by default."""
    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        path = os.path.join(folder, "out.pickle")
        recording_of(recording).export(path, **{"all": True, **options})
        return read_pickle(path)


def environment_with(**more):
    """Returns the environment of a separate program, which finds the package and the tests."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), ROOT]))
    return {**os.environ, "PYTHONPATH": path, **more}


def trace_of(snapshot, device=0):
    traces = snapshot["device_traces"]
    return traces[device] if device < len(traces) else []


class CudaCase(RecordingCase):
    """Records CUDA memory. Torch's own recorder is switched off after each test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # By default torch needs seconds to name the native frames of a snapshot. It reads the variable once.
        mode = os.environ.get("TORCH_SYMBOLIZE_MODE", "dladdr")
        changed = mock.patch.dict(os.environ, TORCH_SYMBOLIZE_MODE=mode)
        changed.start()
        cls.addClassCleanup(changed.stop)
        import torch

        torch.cuda.init()
        # Kernels are loaded when they are first used, which may wait for the device.
        torch.cuda._sleep(1)
        torch.zeros(8, device="cuda").mul_(2).add_(1)
        torch.cuda.synchronize()

    def setUp(self):
        super().setUp()
        # Frees the garbage of other tests before this test starts.
        gc.collect()

    def tearDown(self):
        import torch

        torch.cuda.memory._record_memory_history(None)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        super().tearDown()

    def cuda_memory(self, **options):
        import stackweave.torch

        memory = stackweave.torch.cuda_memory(self.path, overwrite=True, **options)
        self.addCleanup(lambda: memory.state in ("recording", "paused") and memory.stop())
        return memory

    @contextlib.contextmanager
    def both(self, **options):
        """Runs torch's recorder and ours. At the end the object has the snapshots `of_torch` and `ours`."""
        import torch

        seen = Seen()
        torch.cuda.memory._record_memory_history(max_entries=2_000_000, stacks="all", context="all", clear_history=True)
        with self.cuda_memory(**options) as memory:
            empty(FIRST_MARK)
            yield seen
            empty(LAST_MARK)
            # Torch copies the history first, and reports the snapshot to its hooks afterwards.
            seen.of_torch = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(None)
        seen.ours = exported(memory)
        seen.memory = memory

    def assert_agree(self, seen, snapshots=True):
        """Asserts that both have the same events, the same Python frames, and the same state at the end.

        snapshots=False ignores events of snapshots: when memory runs out, our recorder requests a snapshot itself, and
        only torch records that.
        """
        of_torch, ours = between_marks(trace_of(seen.of_torch)), between_marks(trace_of(seen.ours))
        if not snapshots:
            of_torch, ours = ([entry for entry in trace if entry["action"] != "snapshot"] for trace in (of_torch, ours))
        self.assertEqual(trace_differences(of_torch, ours), [])
        self.assertEqual(stack_differences(of_torch, ours), [])
        self.assertEqual(segment_differences(seen.of_torch["segments"], seen.ours["segments"]), [])
        self.assertEqual(block_stack_differences(seen.of_torch["segments"], seen.ours["segments"], of_torch), [])
        return of_torch, ours

    def run_file(self, code, *arguments, status=0, **environment):
        """Runs a separate program and returns its output. Its first argument is the path of the recording."""
        program = os.path.join(self.folder, "program.py")
        with open(program, "w") as file:
            file.write(code)
        done = subprocess.run(
            [PYTHON, "-X", "faulthandler", program, self.path, *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment_with(**environment),
            timeout=PROGRAM_SECONDS,
        )
        self.assertEqual(done.returncode, status, done.stdout[-3000:] + done.stderr[-6000:])
        return done.stdout

    def other_recordings(self):
        """Returns the recordings in the folder except the requested one."""
        return sorted(set(glob.glob(os.path.join(self.folder, "**", "*.swv*"), recursive=True)) - {self.path})


class Seen:
    """The snapshots of both recorders, and the objects that must live until both are taken."""

    def __init__(self):
        self.of_torch = self.ours = self.memory = self.kept = None
