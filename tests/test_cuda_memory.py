"""stackweave.torch.cuda_memory records the events of a CUDA allocator with their stacks. The allocator is a fake."""

import json
import os
import unittest

import stackweave
from tests import cuda_support
from tests.recordings import RecordingCase
from tests.support import run_on_newest

setUpModule = run_on_newest

#: Torch's names of our kinds of events.
ACTIONS = {
    "host-allocate": "alloc",
    "host-free-requested": "free_requested",
    "host-free-completed": "free_completed",
    "segment": "segment_alloc",
    "segment-map": "segment_map",
    "segment-free": "segment_free",
    "segment-unmap": "segment_unmap",
}
FIELDS = ("device", "address", "size", "stream", "pool")
BEGIN = """
import ctypes, gc, json, os, random, signal, sys, threading, traceback, warnings
import stackweave
import torch
from tests.cuda_support import FakeDevices

devices = FakeDevices(torch.LIBRARY)

def cuda_memory(**options):
    return stackweave.torch.cuda_memory(sys.argv[1], **options)

def churn(seed, rounds, device=None, library=devices.library):
    chosen, blocks = random.Random(seed), []
    for number in range(rounds):
        on = chosen.randrange(2) if device is None else device
        if blocks and chosen.random() < 0.48:
            on, address = blocks.pop(chosen.randrange(len(blocks)))
            if chosen.random() < 0.3:
                library.fake_use_on(on, address, 77)
            library.fake_free(on, address)
        else:
            pool = chosen.choice([0, 5, 9 << 32])
            blocks.append((on, library.fake_allocate(on, chosen.randrange(1, 1 << 22), chosen.choice([0, 8]), pool)))
        if number % 100 == 0:
            library.fake_streams_are_done(on)
            library.fake_empty_cache(on)
            library.fake_expand(on, number % 200 == 0)
    return blocks
"""


def host_events(recording, *kinds):
    return [event for event in recording.events() if event.kind in kinds]


def summary_of(event):
    values = event.values
    return (ACTIONS[event.kind], *(values[name] for name in FIELDS))


class CudaCase(RecordingCase):
    @classmethod
    def setUpClass(cls):
        cls.torch = cuda_support.fake_torch()
        cls.hook = cuda_support.fake_hook()[1]

    def run_torch(self, code, *arguments, stderr="", status=0, begin=BEGIN, **environment):
        """Runs a program that imports the fake torch, and loads its hook unless the environment says otherwise."""
        path = os.pathsep.join(filter(None, (os.path.dirname(self.torch), os.environ.get("PYTHONPATH"))))
        environment = {"STACKWEAVE_CUDA_LIBRARY": self.hook, "PYTHONPATH": path, **environment}
        return self.run_script(begin + code, *arguments, stderr=stderr, status=status, **environment)

    def opened(self, path=None):
        return stackweave.open(path or self.path)


class Recorded(CudaCase):
    def test_every_event_is_in_the_file(self):
        printed = self.run_torch(
            """
torch.cuda.init()
with cuda_memory():
    churn(1, 3000)
    devices.library.fake_limit(0, 1 << 20)
    devices.library.fake_allocate(0, 1 << 30, 0, 0)
print(json.dumps([event for event in devices.events() if event[0] not in ("snapshot", "oom")]))
""",
            stderr="stackweave: CUDA device 0 is out of memory: .*\n",
        )
        happened = [tuple(event) for event in json.loads(printed)]
        recorded = [summary_of(event) for event in host_events(self.opened(), *ACTIONS)]
        self.assertGreater(len(happened), 4000)
        for device in range(2):
            mine = [event for event in happened if event[1] == device]
            self.assertEqual([event for event in recorded if event[1] == device], mine)

    def test_stacks_are_those_of_the_program(self):
        printed = self.run_torch("""
torch.cuda.init()
seen = []

def inner(depth):
    if depth:
        return inner(depth - 1)
    seen.append((traceback.extract_stack(), devices.library.fake_allocate(0, 100, 0, 0)))
    seen.append((traceback.extract_stack(), devices.library.fake_free(0, seen[-1][1])))

with cuda_memory():
    for depth in (0, 3, 20):
        inner(depth)
    thread = threading.Thread(target=inner, args=(2,))
    thread.start()
    thread.join()
print(json.dumps([[(f.filename, f.lineno, f.name) for f in reversed(stack)] for stack, _ in seen]))
""")
        expected = [[tuple(frame) for frame in stack] for stack in json.loads(printed)]
        events = host_events(self.opened(), "host-allocate", "host-free-requested")
        self.assertEqual(len(events), 8)
        for event, stack in zip(events, expected):
            frames = [(frame.filename, frame.lineno, frame.name) for frame in event.stack if frame.kind == "python"]
            self.assertEqual(frames, stack)
            self.assertEqual(event.stack[0].module, "libc10_cuda.so", "the caller of the hook is innermost")
            self.assertNotIn(os.path.basename(self.hook), [frame.module for frame in event.stack])
        for event in host_events(self.opened(), "host-free-completed"):
            self.assertTrue(event.stack, "it has the stack of the request")

    def test_without_stacks_of_frees_and_of_native_code(self):
        self.run_torch("""
torch.cuda.init()
with cuda_memory(native=False, free_stacks=False):
    devices.free(devices.allocate(100))
""")
        allocated, freed = host_events(self.opened(), "host-allocate", "host-free-requested")
        self.assertEqual({frame.kind for frame in allocated.stack}, {"python"})
        self.assertEqual(freed.stack, ())

    def test_existing_blocks_are_recorded_as_present(self):
        self.run_torch("""
torch.cuda.init()
kept = devices.allocate(1000, 1, 8)
gone = devices.allocate(500)
with cuda_memory():
    devices.free(gone)
    devices.allocate(70)
""")
        recording = self.opened()
        present = host_events(recording, "host-present")
        self.assertEqual([(event.values["device"], event.values["size"]) for event in present], [(0, 500), (1, 1000)])
        self.assertEqual({event.stack[0].name for event in present}, {"allocated before the recording"})
        self.assertEqual(len(host_events(recording, "segment-present")), 2)
        memory = recording.memory()
        self.assertEqual(memory.totals(device=0).live_bytes, 70)
        self.assertEqual(memory.totals(device=1).live_bytes, 1000)

    def test_only_cuda_is_recorded_unless_the_process_is_too(self):
        for process in (False, True):
            self.run_torch(f"""
torch.cuda.init()
with cuda_memory(host_memory={process}, overwrite=True):
    devices.allocate(100)
    kept = [bytearray(100_000) for _ in range(10)]
""")
            memory = self.opened().memory()
            self.assertEqual(memory.totals(device=0).live_bytes, 100)
            self.assertEqual(memory.totals(device=-1).bytes > 1_000_000, process)

    def test_tags_are_those_of_torch(self):
        self.run_torch("""
torch.cuda.init()
with cuda_memory():
    devices.library.fake_text(b"forward")
    devices.allocate(100)
    devices.library.fake_text(b"")
    devices.allocate(200)
""")
        memory = self.opened().memory(tag="forward")
        self.assertEqual(memory.totals(device=0).bytes, 100)

    def test_the_end_has_the_state_of_the_allocator(self):
        self.run_torch("""
torch.cuda.init()
with cuda_memory() as memory:
    kept = devices.allocate(1000)
    memory.dump()
""")
        recording = self.opened()
        states = host_events(recording, "host-state")
        self.assertEqual([(event.values["state"], event.values["reason"]) for event in states][::2], [(1, 2), (1, 0)])
        blocks = host_events(recording, "block-state")
        self.assertEqual(
            [(event.values["requested"], event.values["flags"]) for event in blocks], [(1000, 3), (0, 0)] * 2
        )
        self.assertTrue(blocks[0].stack, "it has the stack of the allocation")
        self.assertEqual(blocks[0].stack, blocks[2].stack)


class Life(CudaCase):
    def test_it_can_begin_before_cuda_is_initialised(self):
        self.run_torch("""
with cuda_memory():
    assert not torch.cuda.is_initialized()
    torch.cuda.init()
    devices.allocate(100)
""")
        self.assertEqual(len(host_events(self.opened(), "host-allocate")), 1)

    def test_cuda_may_be_initialised_never_or_too_late(self):
        self.run_torch("""
with cuda_memory():
    pass
torch.cuda.init()
devices.allocate(100)
""")
        self.assertEqual(host_events(self.opened(), *ACTIONS), [])

    def test_a_beginning_that_fails_later_does_not_fail_the_program(self):
        self.run_torch(
            """
from stackweave.torch._cuda.hook import CudaHook

def fail(self):
    raise stackweave.StackweaveError("the allocator is strange")

CudaHook.begin = fail
with cuda_memory():
    torch.cuda.init()
    devices.allocate(100)
""",
            stderr="stackweave: the allocator is strange\n",
        )
        self.assertEqual(host_events(self.opened(), *ACTIONS), [])

    def test_cuda_may_be_initialised_while_it_begins(self):
        self.run_torch("""
from stackweave.torch._cuda.source import CudaSource

prepare = CudaSource.prepare

def prepare_and_init(self, recording):
    prepare(self, recording)
    torch.cuda.init()

CudaSource.prepare = prepare_and_init
with cuda_memory():
    devices.allocate(100)
""")
        self.assertEqual(len(host_events(self.opened(), "host-allocate")), 1)

    def test_it_may_stop_while_it_begins(self):
        printed = self.run_torch("""
from stackweave.torch._cuda.hook import CudaHook

begin = CudaHook.begin

def begin_and_stop(self):
    begin(self)
    memory.stop()

CudaHook.begin = begin_and_stop
memory = cuda_memory().start()
torch.cuda.init()
try:
    memory._cuda_source.hook.record_state(2)
except stackweave.StackweaveError as error:
    print(error)
""")
        self.assertEqual(printed, "CUDA's memory can't be recorded: nothing is recorded\n")

    def test_an_inexact_beginning_is_reported(self):
        printed = self.run_torch(
            """
torch.cuda.init()

@ctypes.CFUNCTYPE(None, ctypes.c_int)
def between(next_device):
    if next_device == 1:
        thread = threading.Thread(target=devices.allocate, args=(100,))
        thread.start()
        thread.join()

devices.library.fake_between_devices(between)
memory = cuda_memory().start()
devices.library.fake_between_devices(None)
assert memory.hook_stats() == {"waits": 5, "waits_in_vain": 5, "inexact": 1}, memory.hook_stats()
memory.stop()
print(memory.hook_stats()["inexact"])
with stackweave.torch.cuda_memory(sys.argv[1], overwrite=True) as second:
    pass
print(memory.hook_stats()["inexact"], second.hook_stats()["inexact"])
""",
            stderr="stackweave: the beginning of the recording is not exact: .*\n",
        )
        self.assertEqual(printed, "1\n1 0\n")

    def test_a_dump_has_the_state_of_the_allocator_while_it_is_paused(self):
        self.run_torch("""
torch.cuda.init()
with cuda_memory() as memory:
    memory.pause()
    devices.allocate(100)
    memory.dump()
    memory.resume()
    devices.allocate(200)
""")
        recording = self.opened()
        self.assertEqual([event.values["size"] for event in host_events(recording, "host-allocate")], [200])
        rows = host_events(recording, "host-state", "block-state")
        second_state = [row.kind for row in rows].index("host-state", 1)
        requested = [event.values.get("requested") for event in rows[:second_state]]
        self.assertEqual(requested[:2], [None, 100])

    def test_a_broken_standard_error_does_not_fail_the_program(self):
        for broken in ("sys.stderr.close()", "sys.stderr = None", "sys.stderr = open('/dev/full', 'w')"):
            self.run_torch(
                f"""
torch.cuda.init()
devices.library.fake_limit(0, 4 << 20)
{broken}
with cuda_memory(overwrite=True):
    assert devices.allocate(8 << 20) == 0
os._exit(0)
"""
            )
            self.assertEqual(len(host_events(self.opened(), "host-state")), 4, broken)

    def test_a_library_for_another_torch_is_refused(self):
        printed = self.run_torch("""
torch.__version__ = "9.9"
try:
    cuda_memory().start()
except stackweave.StackweaveError as error:
    print(error)
""")
        self.assertRegex(printed, "was built for torch 0.0.0[+]fake, and this is torch 9.9")
        self.assertEqual(self.files(), [])

    def test_a_child_that_is_the_first_to_use_cuda_records_nothing_of_it(self):
        self.run_torch("""
warnings.simplefilter("ignore", DeprecationWarning)  # stackweave runs threads
with cuda_memory(host_memory=True):
    child = os.fork()
    torch.cuda.init()
    devices.allocate(100 if child == 0 else 200)
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
""")
        self.assertEqual(len(self.files()), 2)
        (event,) = host_events(self.opened(self.folder), "host-allocate")
        self.assertEqual(event.values["size"], 200)

    def test_a_state_that_can_not_be_recorded_is_reported_once(self):
        self.run_torch(
            """
from stackweave.torch._cuda.hook import CudaHook

def fail(self, *_, **_options):
    raise stackweave.StackweaveError("the allocator is strange")

torch.cuda.init()
with cuda_memory() as memory:
    CudaHook.record_state = CudaHook.end = fail
    devices.allocate(100)
    memory.dump()
    memory.dump()
""",
            stderr="stackweave: the state of the allocator is not in the recording: the allocator is strange\n",
        )
        self.assertEqual(len(host_events(self.opened(), "host-allocate")), 1)

    def test_it_starts_and_stops_often(self):
        self.run_torch("""
torch.cuda.init()
for number in range(30):
    with stackweave.torch.cuda_memory(f"{sys.argv[1]}.{number}.swv"):
        devices.allocate(number + 1)
    devices.allocate(1000)
""")
        for number in range(30):
            recording = self.opened(f"{self.path}.{number}.swv")
            (event,) = host_events(recording, "host-allocate")
            self.assertEqual(event.values["size"], number + 1)
            self.assertEqual(len(host_events(recording, "host-present")), 2 * number)

    def test_there_is_one_recording_of_memory_at_a_time(self):
        self.run_torch(
            """
torch.cuda.init()
def memory(path):
    return stackweave.memory(path, overwrite=True)

def cuda(path):
    return stackweave.torch.cuda_memory(path, overwrite=True)

for first, second in ((cuda, memory), (memory, cuda), (cuda, cuda)):
    with first(sys.argv[1]):
        try:
            second(sys.argv[2]).start()
        except stackweave.StackweaveError as error:
            assert "there can be one at a time" in str(error), error
        else:
            raise AssertionError
        assert not os.path.exists(sys.argv[2])
""",
            self.path + ".second",
        )

    def test_a_program_that_just_ends_has_a_complete_recording(self):
        self.run_torch("""
torch.cuda.init()
cuda_memory().start()
devices.allocate(100)
""")
        recording = self.opened()
        self.assertEqual(recording.info()["missing"], [])
        self.assertEqual([event.values["state"] for event in host_events(recording, "host-state")], [1, 2])

    def test_a_forked_child_records_nothing_of_it(self):
        self.run_torch("""
torch.cuda.init()
with cuda_memory():
    warnings.simplefilter("ignore", DeprecationWarning)  # stackweave runs threads
    child = os.fork()
    if child == 0:
        devices.allocate(100)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    devices.allocate(200)
""")
        self.assertEqual(self.files(), ["out.swv"])
        (event,) = host_events(self.opened(), "host-allocate")
        self.assertEqual(event.values["size"], 200)

    def test_threads_with_and_without_the_gil_do_not_hang(self):
        """Some threads hold the GIL and wait for the lock of a device, others hold that lock. The buffer is small."""
        self.run_torch(
            """
torch.cuda.init()
sys.setswitchinterval(1e-5)
with cuda_memory(buffer="64KiB") as memory:
    threads = [
        threading.Thread(target=churn, args=(number, 1500, 0, (devices.library, devices.held)[number % 2]))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        memory.dump()
    for thread in threads:
        thread.join()
happened = [event for event in devices.events() if event[0] not in ("snapshot", "oom")]
json.dump(happened, open(sys.argv[2], "w"))
""",
            self.path + ".json",
        )
        with open(self.path + ".json") as file:
            happened = [tuple(event) for event in json.load(file)]
        self.assertEqual([summary_of(event) for event in host_events(self.opened(), *ACTIONS)], happened)
        self.assert_states_are_complete()

    def assert_states_are_complete(self):
        """Asserts that no other event interrupts a state, and that each block in use has a stack."""
        is_in_state = False
        blocks = 0
        for event in host_events(self.opened(), *ACTIONS, "host-state", "segment-state", "block-state"):
            if event.kind == "host-state":
                is_in_state = event.values["state"] == 1
                continue
            self.assertEqual(event.kind in ("segment-state", "block-state"), is_in_state, event)
            if event.kind == "block-state" and event.values["flags"] & 1:
                blocks += 1
                self.assertTrue(event.stack, event)
        self.assertGreater(blocks, 100)

    def test_a_ring_keeps_the_last_events(self):
        self.run_torch("""
torch.cuda.init()
with cuda_memory(ring="256KiB"):
    churn(1, 20_000)
    devices.allocate(12345)
""")
        events = host_events(self.opened(), "host-allocate")
        self.assertEqual(events[-1].values["size"], 12345)
        self.assertLess(len(events), 10_000)


class OutOfMemory(CudaCase):
    PROGRAM = """
torch.cuda.init()
devices.library.fake_limit(0, 4 << 20)
with cuda_memory({options}):
    devices.allocate(1 << 20)
    for number in range(6):
        assert devices.allocate(8 << 20) == 0
"""
    MESSAGE = (
        r"stackweave: CUDA device 0 is out of memory: 8.00 MiB were requested, and 2.00 MiB of 4.00 MiB are free. "
        r"What is in use: stackweave heap \S+{name}\n"
    )

    def test_it_is_reported_and_written(self):
        self.run_torch(self.PROGRAM.format(options=""), stderr=self.MESSAGE.format(name=r"out\.swv") * 4)
        recording = self.opened()
        events = host_events(recording, "host-out-of-memory")
        self.assertEqual(len(events), 6)
        self.assertEqual((events[0].values["size"], events[0].values["free"]), (8 << 20, 2 << 20))
        self.assertIn("<module>", [frame.name for frame in events[0].stack])
        reasons = [event.values["reason"] for event in host_events(recording, "host-state")][::2]
        self.assertEqual(reasons, [1, 1, 1, 1, 0])

    def test_a_ring_is_written_beside_it(self):
        messages = "".join(self.MESSAGE.format(name=rf"out\.oom-{number}\.swv") for number in (1, 2))
        kept = os.path.join(self.folder, "out.oom-1.swv")
        with open(kept, "w"):
            messages = messages.replace("oom-1", "oom-3")
        self.run_torch(self.PROGRAM.format(options='ring="1MiB", oom_dumps=2'), stderr=messages)
        self.assertEqual(self.files(), ["out.oom-1.swv", "out.oom-2.swv", "out.oom-3.swv", "out.swv"])
        self.assertEqual(os.path.getsize(kept), 0, "the file of another run is unchanged")
        recording = self.opened(os.path.join(self.folder, "out.oom-3.swv"))
        self.assertEqual(len(host_events(recording, "host-out-of-memory")), 1)
        self.assertEqual(len(host_events(recording, "host-state")), 2)

    def test_none_are_written_if_none_are_wanted(self):
        self.run_torch(self.PROGRAM.format(options="oom_dumps=0"))
        self.assertEqual(len(host_events(self.opened(), "host-out-of-memory")), 6)

    def test_failures_at_that_moment_do_not_fail_the_program(self):
        self.run_torch(
            "stackweave.torch.CudaMemoryRecorder._dump_out_of_memory = lambda *_: 1 / 0\n"
            + self.PROGRAM.format(options=""),
            stderr="stackweave: the snapshot at the end of memory could not be written: division by zero\n",
        )
        self.assertEqual(len(host_events(self.opened(), "host-out-of-memory")), 6)


if __name__ == "__main__":
    unittest.main()
