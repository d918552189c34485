"""What the tests of CUDA memory share: both recorders around the same work, and the comparison of what they saw."""

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

#: Sizes that nothing else asks for. Both histories are cut there: what comes before and behind is the recorders' own.
FIRST_MARK, LAST_MARK = 12_289, 12_801
#: The longest that a program of its own may take, in seconds. It imports torch and starts CUDA.
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
    """A number of bytes that no other allocation of these tests asks for."""
    return next(_sizes)


def empty(size):
    """Memory of the GPU."""
    import torch

    return torch.empty(size, dtype=torch.uint8, device="cuda")


def is_python(frame):
    """Whether a frame of a snapshot is Python's. The format does not say; files of Python code do."""
    return frame["filename"].endswith(".py") or frame["filename"].startswith("<")


def python_part(frames):
    """File, line and function of the Python frames, innermost first. Torch has the plain name, we the qualified one."""
    return [
        (frame["filename"], frame["line"], frame["name"].rpartition(".")[2]) for frame in frames if is_python(frame)
    ]


def expected_part(extracted):
    """The same of what traceback.extract_stack() gave."""
    return [(frame.filename, frame.lineno, frame.name) for frame in reversed(extracted)]


def names(frames):
    """All functions of a stack by their plain names, innermost first; native ones as they are."""
    return [frame["name"].rpartition(".")[2] if is_python(frame) else frame["name"] for frame in frames]


def told(entry, with_pool=True):
    """What both recorders must say of an event."""
    action = entry["action"]
    if action == "snapshot":
        return (action, entry["size"])
    place = entry["device_free"] if action == "oom" else entry["addr"]
    told = (action, place, entry["size"], entry["stream"])
    return (*told, tuple(entry.get("pool_id", ()))) if with_pool else told


def between_marks(trace, first=FIRST_MARK, last=LAST_MARK):
    """The events from one mark on, up to the other, with both of them."""
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
    """The one allocation of that size."""
    found = allocs(trace, size)
    if len(found) != 1:
        raise AssertionError(f"{len(found)} allocations of {size} bytes among {len(trace)} events: {short(trace)}")
    return found[0]


def short(trace, limit=12):
    shown = [f"{entry['action']} {entry['size']}" for entry in trace[-limit:]]
    return ", ".join(["...", *shown] if len(trace) > limit else shown)


def trace_differences(theirs, ours):
    """Where two histories part, as sentences; none if they are the same."""
    with_pool = any("pool_id" in entry for entry in theirs)
    told_theirs = [told(entry, with_pool) for entry in theirs]
    told_ours = [told(entry, with_pool) for entry in ours]
    found = []
    if len(told_theirs) != len(told_ours):
        found.append(f"torch has {len(told_theirs)} events, we have {len(told_ours)}")
    for place, pair in enumerate(itertools.zip_longest(told_theirs, told_ours)):
        if pair[0] != pair[1]:
            found.append(f"event {place}: torch has {pair[0]}, we have {pair[1]}")
            around = slice(max(place - 2, 0), place + 4)
            found.append(f"torch around it: {told_theirs[around]}")
            found.append(f"we around it: {told_ours[around]}")
            break
    return found


def stack_differences(theirs, ours, actions=("alloc", "free_requested")):
    """Where the Python frames of two histories of the same events differ. Torch gives other events stacks of others."""
    for place, (their, our) in enumerate(zip(theirs, ours)):
        if their["action"] in actions and "frames" in their:
            expected, found = python_part(their["frames"]), python_part(our.get("frames", []))
            if expected != found:
                return [f"event {place}, {told(their, False)}: torch has {expected}, we have {found}"]
    return []


def segment_of(segment):
    """What both must say of a segment and its blocks. What was once asked for an inactive block is no matter."""
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
    told = {field: segment[field] for field in fields}
    return {
        **told,
        "segment_pool_id": tuple(segment.get("segment_pool_id", (0, 0))),
        "is_expandable": bool(segment.get("is_expandable")),
        "blocks": blocks,
    }


def segment_differences(theirs, ours):
    """Where two accounts of the allocator differ, as sentences."""
    found = []
    theirs = {(segment["device"], segment["address"]): segment_of(segment) for segment in theirs}
    ours = {(segment["device"], segment["address"]): segment_of(segment) for segment in ours}
    found += [f"only torch has segment {place}: {theirs[place]}" for place in sorted(theirs.keys() - ours.keys())]
    found += [f"only we have segment {place}: {ours[place]}" for place in sorted(ours.keys() - theirs.keys())]
    for place in sorted(theirs.keys() & ours.keys()):
        for field, expected in theirs[place].items():
            if ours[place][field] != expected:
                found.append(f"segment {place}, {field}: torch has {expected}, we have {ours[place][field]}")
    return found[:6]


def block_stacks(segments):
    """The Python frames of blocks in use whose stack is known, by address."""
    found = {}
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and block.get("frames"):
                found[block.get("address", address)] = python_part(block["frames"])
            address += block["size"]
    return found


def block_stack_differences(theirs, ours, trace):
    """Where torch knows who has taken a block, and we say something else. Of blocks that were taken in this history."""
    ours = block_stacks(ours)
    taken = {entry["addr"] for entry in trace if entry["action"] == "alloc"}
    return [
        f"block at {address:#x}: torch has {expected}, we have {ours.get(address)}"
        for address, expected in block_stacks(theirs).items()
        if address in taken and ours.get(address) != expected
    ][:3]


def block_at(snapshot, address):
    """The block at an address, as the account says."""
    for segment in snapshot["segments"]:
        place = segment["address"]
        for block in segment["blocks"]:
            if block.get("address", place) == address:
                return block
            place += block["size"]
    raise AssertionError(f"no block at {address:#x} in {len(snapshot['segments'])} segments")


def say(text):
    """Something worth to know that no claim is made of."""
    print(f"info: {text}", file=sys.stderr)


def read_pickle(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def exported(recording, **options):
    """What PyTorch's viewer gets of a recording: every frame, unless it is said otherwise."""
    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        path = os.path.join(folder, "out.pickle")
        recording_of(recording).export(path, **{"all": True, **options})
        return read_pickle(path)


def environment_with(**more):
    """The environment of a program of its own, which finds the package and the tests."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), ROOT]))
    return {**os.environ, "PYTHONPATH": path, **more}


def trace_of(snapshot, device=0):
    traces = snapshot["device_traces"]
    return traces[device] if device < len(traces) else []


class CudaCase(RecordingCase):
    """Has recordings of CUDA memory. Torch's own recorder is off again when a test is over."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Torch's own snapshots need seconds for the names of native frames otherwise. Read when torch first names one.
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
        # What other tests have left is not freed in the middle of this one.
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
        """Torch's recorder and ours. Gives a place for both snapshots: `theirs` and `ours`, there when it is over."""
        import torch

        seen = Seen()
        torch.cuda.memory._record_memory_history(max_entries=2_000_000, stacks="all", context="all", clear_history=True)
        with self.cuda_memory(**options) as memory:
            empty(FIRST_MARK)
            yield seen
            empty(LAST_MARK)
            # Torch takes the history first, and tells of the snapshot then.
            seen.theirs = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(None)
        seen.ours = exported(memory)
        seen.memory = memory

    def assert_agree(self, seen, snapshots=True):
        """Both have the same events, the same Python frames, and the same account at the end.

        Without snapshots these are left out: ours asks for one itself when memory is not there, and only torch has it.
        """
        theirs, ours = between_marks(trace_of(seen.theirs)), between_marks(trace_of(seen.ours))
        if not snapshots:
            theirs, ours = ([entry for entry in trace if entry["action"] != "snapshot"] for trace in (theirs, ours))
        self.assertEqual(trace_differences(theirs, ours), [])
        self.assertEqual(stack_differences(theirs, ours), [])
        self.assertEqual(segment_differences(seen.theirs["segments"], seen.ours["segments"]), [])
        self.assertEqual(block_stack_differences(seen.theirs["segments"], seen.ours["segments"], theirs), [])
        return theirs, ours

    def run_file(self, code, *arguments, status=0, **environment):
        """Runs a program of its own, and gives what it printed. Its first argument is the path of the recording."""
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
        """Recordings beside the one that was asked for."""
        return sorted(set(glob.glob(os.path.join(self.folder, "**", "*.swv*"), recursive=True)) - {self.path})


class Seen:
    """What both recorders have seen, and what is to be kept until they have."""

    def __init__(self):
        self.theirs = self.ours = self.memory = self.kept = None
