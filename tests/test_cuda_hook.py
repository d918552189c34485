"""The hook in the CUDA allocator records all events there, in order, whatever other threads do."""

import ctypes
import os
import random
import re
import subprocess
import sys
import threading
import unittest

from stackweave import StackweaveError
from stackweave.torch._cuda.hook import CudaHook
from tests import cuda_support
from tests.cuda_support import PRESENT, STATES, summary
from tests.support import ROOT, run_on_newest

setUpModule = run_on_newest

#: The compiler flags of the fake allocator. A subprocess tests the variant of an old torch.
FLAGS = tuple(filter(None, os.environ.get("STACKWEAVE_FAKE_TORCH", "").split()))
IS_OLD = bool(FLAGS)
DEVICES = 3


class HookCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        devices, path = cuda_support.fake_hook(*FLAGS)
        cls.devices, cls.library = devices, devices.library
        cls.hook = CudaHook(path)
        cls.library.fake_init(DEVICES)
        cls.hook._call("attach", ctypes.cast(cls.library.fake_record, ctypes.c_void_p))

    def setUp(self):
        self.library.fake_forget_events()
        self.addCleanup(self.clean_up)
        self.allocated = []

    def clean_up(self):
        self.hook.end(with_state=False)
        self.library.fake_between_devices(None)
        for device, address in self.allocated:
            self.devices.free(address, device)
        for device in range(DEVICES):
            self.library.fake_streams_are_done(device)
            self.library.fake_empty_cache(device)
            self.library.fake_expand(device, 0)
            self.devices.library.fake_limit(device, 1 << 36)
        self.library.fake_text(b"")

    def allocate(self, size, device=0, **where):
        address = self.devices.allocate(size, device, **where)
        self.allocated.append((device, address))
        return address

    def free(self, address, device=0):
        self.allocated.remove((device, address))
        self.devices.free(address, device)

    def recorded(self, but=()):
        return [summary(event) for event in self.devices.recorded_events() if summary(event)[0] not in but]

    def of_the_program(self):
        """Returns the events of each device: those that happened, and those that were recorded.

        Our own snapshots and the events that the hook adds are left out.
        """
        happened = [event for event in self.devices.events() if event[0] != "snapshot"]
        recorded = self.recorded(but={*STATES, *PRESENT, "tag", "annotate", "snapshot"})
        if IS_OLD:  # Its events have no pool.
            happened = [(*event[:5], 0) for event in happened]
        return [
            [[event for event in events if event[1] == device] for device in range(DEVICES)]
            for events in (happened, recorded)
        ]

    def recorded_while_another_allocates(self, before, work):
        """Returns the kinds of events if another thread allocates between the snapshots of the first two devices."""
        for _ in range(20):
            self.library.fake_between_devices(None)
            before()
            threads, allocated = [], []

            @ctypes.CFUNCTYPE(None, ctypes.c_int)
            def between(next_device, threads=threads, allocated=allocated):
                if next_device == 1 and not threads:
                    waits = self.hook.counts()[0]
                    threads.append(threading.Thread(target=lambda: allocated.append(self.devices.allocate(5000))))
                    threads[0].start()
                    while self.hook.counts()[0] == waits and threads[0].is_alive():
                        pass

            self.library.fake_between_devices(between)
            self.library.fake_forget_events()
            work()
            threads[0].join()
            names = [event[0] for event in self.recorded()]
            self.devices.free(allocated[0])
            # On a busy machine the hook may stop waiting. Another test covers that.
            if self.hook.counts()[1] == 0:
                return names
        self.fail("the hook gave up waiting each time")


class Events(HookCase):
    def test_each_event_is_recorded_with_its_figures(self):
        self.hook.begin()
        self.program()
        self.hook.end(with_state=True)
        happened, recorded = self.of_the_program()
        self.assertEqual(recorded, happened)
        actions = {event[0] for events in recorded for event in events}
        expected = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom"}
        self.assertEqual(actions, expected | {"segment_map", "segment_unmap"})
        of_actions = [event for event in self.devices.recorded_events() if summary(event)[0] in actions]
        self.assertTrue(all(event.has_stack_address for event in of_actions))

    def program(self):
        chosen = random.Random(1)
        blocks = []
        for number in range(2000):
            device = chosen.randrange(DEVICES)
            if blocks and chosen.random() < 0.48:
                device, address = blocks.pop(chosen.randrange(len(blocks)))
                if chosen.random() < 0.3:
                    self.library.fake_use_on(device, address, 77)
                self.free(address, device)
            else:
                pool = chosen.choice([0, 0, 5, 9 << 32])
                size, stream = chosen.randrange(1, 1 << 22), chosen.choice([0, 8])
                blocks.append((device, self.allocate(size, device, stream=stream, pool=pool)))
            if number % 100 == 0:
                self.library.fake_streams_are_done(device)
                self.library.fake_empty_cache(device)
                self.library.fake_expand(device, number % 200 == 0)
        self.devices.library.fake_limit(0, 1 << 20)
        self.assertEqual(self.devices.allocate(1 << 30), 0)

    def test_nothing_is_recorded_before_and_after(self):
        self.allocate(1000)
        self.hook.begin()
        self.hook.end(with_state=False)
        self.allocate(1000)
        self.assertEqual(self.recorded(but=PRESENT), [])

    def test_pools_are_one_number(self):
        if IS_OLD:
            self.skipTest("its events have no pools")
        self.hook.begin()
        for pool in (0, 7, 3 << 32):
            self.allocate(100, pool=pool)
        pools = [event[5] for event in self.recorded() if event[0] == "alloc"]
        self.assertEqual(pools, [0, 7, 1 << 63 | 3])

    def test_a_snapshot_of_the_program_is_recorded_and_ours_are_not(self):
        self.allocate(1000, 1)
        self.hook.begin()
        self.hook.record_state(2)
        self.assertNotIn("snapshot", {event[0] for event in self.recorded()})
        self.library.fake_snapshot()
        snapshots = [event[:4] for event in self.recorded() if event[0] == "snapshot"]
        self.assertEqual(snapshots, [("snapshot", 0, 0, 0), ("snapshot", 1, 0, 1024), ("snapshot", 2, 0, 0)])
        self.hook.end(with_state=True)
        self.assertEqual(len([event for event in self.recorded() if event[0] == "snapshot"]), 3)

    def test_texts_are_tags_of_their_thread_and_recorded_when_they_change(self):
        if IS_OLD:
            self.skipTest("its events have no texts")
        self.hook.begin()
        self.allocate(1)
        for text in (b"forward", b"forward", b"backward", b"", b""):
            self.library.fake_text(text)
            self.allocate(1)

        def elsewhere():
            self.library.fake_text(b"other")
            self.allocate(1)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        self.allocate(1)
        texts = [event.text for event in self.devices.recorded_events() if summary(event)[0] == "tag"]
        self.assertEqual(texts, [b"forward", b"backward", b"", b"other"])

    def test_a_tag_is_recorded_again_in_the_next_recording(self):
        if IS_OLD:
            self.skipTest("its events have no texts")
        self.library.fake_text(b"forward")
        for _ in range(2):
            self.hook.begin()
            self.allocate(1)
            self.hook.end(with_state=False)
        texts = [event.text for event in self.devices.recorded_events() if event.text]
        self.assertEqual(texts, [b"forward"] * 2)

    def test_annotations_have_their_text_and_leave_the_tag(self):
        if IS_OLD:
            self.skipTest("it has no annotations")
        self.hook.begin()
        address = self.allocate(100, 1)
        self.library.fake_annotate(1, address, b"weights")
        self.allocate(100)
        (annotation,) = [event for event in self.devices.recorded_events() if event.text]
        self.assertEqual((summary(annotation)[:3], annotation.text), (("annotate", 1, address), b"weights"))


class Beginnings(HookCase):
    def test_existing_blocks_are_recorded_first(self):
        here = self.allocate(1000)
        there = self.allocate(3 << 20, 2, stream=8)
        gone = self.allocate(512)
        self.free(gone)
        waiting = self.allocate(700)
        self.library.fake_use_on(0, waiting, 77)
        self.free(waiting)
        self.library.fake_forget_events()
        self.hook.begin()
        self.assertEqual(
            self.recorded(),
            [
                ("segment_present", 0, here, 2 << 20, 0, 0),
                ("present", 0, here, 1000, 0, 0),
                ("segment_present", 2, there, 4 << 20, 8, 0),
                ("present", 2, there, 3 << 20, 8, 0),
            ],
            "neither free blocks nor those that the program has freed",
        )
        self.library.fake_streams_are_done(0)
        later = self.allocate(200)
        completed = ("free_completed", 0, waiting, 700, 0, 0)
        self.assertEqual(self.recorded()[4:], [completed, ("alloc", 0, later, 200, 0, 0)])

    def test_events_of_other_threads_come_after_the_existing_blocks(self):
        """A call of the hook waits until the blocks of its device are recorded, and no longer."""
        self.allocate(1000)
        self.allocate(1000, 2)
        names = self.recorded_while_another_allocates(lambda: self.hook.end(with_state=False), self.hook.begin)
        self.assertEqual(names, [*["segment_present", "present"] * 2, "alloc"])

    def test_a_hook_that_would_wait_for_ever_does_not(self):
        """A snapshot waits for a thread that waits for the hook, as if for its lock. The beginning is still exact."""
        self.allocate(1000)
        seen = []

        @ctypes.CFUNCTYPE(None, ctypes.c_int)
        def between(next_device):
            if next_device == 1 and not seen:
                seen.append(True)
                thread = threading.Thread(target=self.allocate, args=(5000,))
                thread.start()
                thread.join()

        self.library.fake_between_devices(between)
        self.library.fake_forget_events()
        self.hook.begin()
        self.assertEqual(self.hook.counts()[1:], (1, 0))
        recorded = self.recorded()
        self.assertEqual([(event[0], event[3]) for event in recorded][1:], [("present", 1000), ("present", 5000)])
        self.allocate(1)
        self.assertEqual(self.recorded()[-1][0], "alloc")
        self.library.fake_between_devices(None)
        self.hook.begin()
        self.assertEqual(self.hook.counts(), (0, 0, 0), "the counts are those of this recording")

    def test_threads_that_hold_the_gil_or_not_begin_and_end_together(self):
        """Nothing hangs, and each recording has the events of each device between its beginning and its end."""
        stopping = threading.Event()

        def work(library, device, seed):
            chosen, mine = random.Random(seed), []
            while not stopping.is_set():
                for _ in range(20):
                    mine.append(library.fake_allocate(device, chosen.randrange(1, 1 << 20), 0, 0))
                while mine:
                    library.fake_free(device, mine.pop())

        libraries = (self.devices.library, self.devices.held)
        threads = [
            threading.Thread(target=work, args=(libraries[number % 2], number % DEVICES, number)) for number in range(6)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                self.library.fake_forget_events()
                self.hook.begin()
                self.allocate(100, 1)
                self.hook.record_state(2)
                self.hook.end(with_state=True)
                # On a very busy machine the beginning may be inexact.
                if self.hook.counts()[2] == 0:
                    self.assert_exact()
        finally:
            stopping.set()
            for thread in threads:
                thread.join()

    def assert_exact(self):
        """Asserts that a ledger of the recorded events ends with the blocks that the allocator had."""
        recorded = self.recorded()
        for device in range(DEVICES):
            of_device = [event for event in recorded if event[1] == device]
            live, segments = {}, {}
            for event in of_device:
                name, _, address, size, *_ = event
                if name in ("present", "alloc"):
                    self.assertNotIn(address, live, event)
                    live[address] = size
                elif name == "free_requested":
                    self.assertEqual(live.pop(address, None), size, event)
                elif name in ("segment_present", "segment_alloc"):
                    segments[address] = size
                elif name == "segment_free":
                    self.assertEqual(segments.pop(address, None), size, event)
            last = len(recorded) - 1 - [event[0] for event in reversed(recorded)].index("state_begin")
            rows = [row for row in self.devices.recorded_events()[last:] if row.device == device]
            in_use = {row.address: row.requested for row in rows if summary(row)[0] == "block_state" and row.flags & 1}
            self.assertEqual(live, in_use)
            self.assertEqual(segments, {row.address: row.bytes for row in rows if summary(row)[0] == "segment_state"})


class States(HookCase):
    def test_a_state_snapshot_has_all_segments_and_blocks(self):
        self.hook.begin()
        first = self.allocate(1000)
        second = self.allocate(600)
        waiting = self.allocate(100)
        self.library.fake_use_on(0, waiting, 77)
        self.free(waiting)
        self.library.fake_expand(1, 1)
        other = self.allocate(5 << 20, 1, stream=8)
        self.free(first)
        self.library.fake_forget_events()
        self.hook.record_state(1)
        rows = self.devices.recorded_events()
        shown = [(summary(row)[:4], row.stream, row.requested, row.flags) for row in rows]
        self.assertEqual(
            shown,
            [
                (("state_begin", 0, 0, 0), 0, 0, 1),
                (("segment_state", 0, first, 2 << 20), 0, 0, 0),
                (("block_state", 0, first, 1024), 0, 1000, 0),
                (("block_state", 0, second, 1024), 0, 600, 3),
                (("block_state", 0, waiting, 512), 0, 100, 2),
                (("block_state", 0, waiting + 512, (2 << 20) - 2560), 0, 0, 0),
                (("segment_state", 1, other, 6 << 20), 8, 0, 3),
                (("block_state", 1, other, 5 << 20), 8, 5 << 20, 3),
                (("block_state", 1, other + (5 << 20), 1 << 20), 8, 0, 0),
                (("state_end", 0, 0, 0), 0, 0, 0),
            ],
        )
        self.allocate(1)
        self.assertEqual(self.recorded()[-1][0], "alloc", "recording continues")

    def test_other_threads_do_not_come_in_between(self):
        self.allocate(1000)
        self.allocate(1000, 2)
        names = self.recorded_while_another_allocates(self.hook.begin, lambda: self.hook.record_state(2))
        rows = ["segment_state", "block_state", "block_state"]
        self.assertEqual(names, ["state_begin", *rows, *rows, "state_end", "alloc"])

    def test_what_happens_before_the_snapshot_of_a_device_is_recorded_before_the_state(self):
        self.allocate(1000)
        self.allocate(1000, 2)
        self.hook.begin()

        @ctypes.CFUNCTYPE(None, ctypes.c_int)
        def between(next_device):
            if next_device == 1:
                thread = threading.Thread(target=self.allocate, args=(5000, 2))
                thread.start()
                thread.join()

        for work in (lambda: self.hook.record_state(2), lambda: self.hook.end(with_state=True)):
            self.library.fake_between_devices(between)
            self.library.fake_forget_events()
            work()
            names = [event[0] for event in self.recorded()]
            self.assertEqual(names[:2] + names[-1:], ["alloc", "state_begin", "state_end"])
            self.assertLessEqual(set(names[2:-1]), {"segment_state", "block_state"})

    def test_a_state_snapshot_that_another_thread_stops_waiting_for_is_taken_again(self):
        self.allocate(1000)
        self.hook.begin()
        seen = []

        @ctypes.CFUNCTYPE(None, ctypes.c_int)
        def between(next_device):
            if next_device == 1 and not seen:
                seen.append(True)
                thread = threading.Thread(target=self.allocate, args=(5000,))
                thread.start()
                thread.join()

        self.library.fake_between_devices(between)
        self.library.fake_forget_events()
        self.hook.record_state(2)
        self.assertEqual(self.hook.counts()[1], 1)
        rows = ["segment_state", *["block_state"] * 3]
        self.assertEqual([event[0] for event in self.recorded()], ["alloc", "state_begin", *rows, "state_end"])

    def test_an_end_has_a_state_snapshot_and_is_the_end(self):
        self.hook.begin()
        self.allocate(1000)
        self.hook.end(with_state=True)
        names = [event[0] for event in self.recorded()]
        self.assertEqual(names[2:], ["state_begin", "segment_state", "block_state", "block_state", "state_end"])
        self.hook.end(with_state=True)
        self.assertEqual(len(self.recorded()), len(names))
        with self.assertRaisesRegex(StackweaveError, "nothing is recorded"):
            self.hook.record_state(2)

    def test_a_child_records_nothing(self):
        self.hook.begin()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                before = len(self.recorded())
                self.devices.allocate(100)
                self.hook.end(with_state=False)
                status = int(len(self.recorded()) != before)
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.allocate(100)
        self.assertEqual(self.recorded()[-1][0], "alloc")


class Failures(HookCase):
    def test_a_failed_start_raises(self):
        """Runs in a separate process, where the hook is not attached."""
        code = """
import sys
from stackweave import StackweaveError
from stackweave.torch._cuda.hook import CudaHook
from tests.cuda_support import FakeDevices
devices, hook = FakeDevices(sys.argv[1]), CudaHook(sys.argv[2])
devices.library.fake_init(1)
for call in (hook.begin, lambda: hook.record_state(2)):
    try:
        call()
    except StackweaveError as error:
        print(error)
"""
        folder = cuda_support.fake_torch(*FLAGS)
        files = (os.path.join(folder, "lib", "libc10_cuda.so"), os.path.join(folder, "hook.so"))
        done = subprocess.run([sys.executable, "-c", code, *files], cwd=ROOT, capture_output=True, text=True)
        first, second = done.stdout.splitlines()
        self.assertRegex(first, "torch does not call the hook")
        self.assertRegex(second, "nothing is recorded")

    def test_a_library_for_another_torch_is_refused(self):
        path = os.path.join(cuda_support.fake_torch(*FLAGS), "hook.so")
        CudaHook(path, "0.0.0+fake")
        sentence = (
            f"^{re.escape(path)} was built for torch 0.0.0\\+fake, and this is torch 9.9: build it with this one$"
        )
        with self.assertRaisesRegex(StackweaveError, sentence):
            CudaHook(path, "9.9")


@unittest.skipIf(IS_OLD, "this process tests the old torch")
class OldTorch(unittest.TestCase):
    def test_one_without_texts_pools_and_annotations_is_recorded_too(self):
        cuda_support.fake_torch()
        command = [sys.executable, "-m", "unittest", "tests.test_cuda_hook"]
        environment = {**os.environ, "STACKWEAVE_FAKE_TORCH": "-DFAKE_TORCH_IS_OLD"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("skipped=5", done.stderr)


if __name__ == "__main__":
    unittest.main()
