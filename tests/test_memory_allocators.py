"""Python's own allocators in a memory recording, and the native recorder beside a running program."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import unittest

import stackweave
from stackweave._options.table import OF_MEMORY
from tests.memory_support import BEGIN, MemoryCase, library_path, of_library

MEGABYTE = 1_000_000
TOO_LARGE = 1 << 46
SECONDS = 120
#: In the form of the native module.
OPTIONS = {option.name: option.checked(option.default) for option in OF_MEMORY} | {"own_memory": True}


def rows_of(memory):
    return memory._hooks.snapshot()["devices"][0]["rows"]


def live_bytes(memory, allocator):
    return sum(row["live_bytes"] for row in rows_of(memory) if row["allocator"] == allocator)


def allocator_of(memory, thing):
    block = memory._hooks.block(id(thing))
    return block and (block["allocator"], block["size"])


class Blocks(MemoryCase):
    def test_an_object_is_recorded_once_at_any_size(self):
        with self.memory(python_allocators=True) as memory:
            small, large = bytes(100), bytes(5000)
            recorded = [allocator_of(memory, thing) for thing in (small, large)]
            allocations = [
                sum(row["allocations"] for row in rows_of(memory) if row["live_bytes"] == sys.getsizeof(thing))
                for thing in (small, large)
            ]
            addresses = [block["address"] for block in memory._hooks.blocks()]
        self.assertEqual([size for _, size in recorded], [sys.getsizeof(small), sys.getsizeof(large)])
        self.assertTrue(all(allocator.startswith("PyObject_") for allocator, _ in recorded), recorded)
        self.assertEqual(allocations[1], 1, "malloc does not record it again")
        self.assertEqual(len(addresses), len(set(addresses)))
        self.assertTrue({id(small), id(large)} <= set(addresses))

    def test_arenas_are_recorded_only_without_their_objects(self):
        for python_allocators in (False, True):
            with self.subTest(python_allocators), self.memory(python_allocators=python_allocators) as memory:
                many = [bytes(200) for _ in range(100_000)]
                mapped = live_bytes(memory, "mmap")
                objects = sum(row["live_bytes"] for row in rows_of(memory) if row["allocator"].startswith("PyObject_"))
                if python_allocators:
                    self.assertLess(mapped, MEGABYTE)
                    self.assertGreaterEqual(objects, sum(map(sys.getsizeof, many)))
                else:
                    self.assertGreater(mapped, 4 * MEGABYTE)
                    self.assertEqual(objects, 0)
                del many

    def test_blocks_from_before_are_unknown(self):
        before = [bytes(1000 + number) for number in range(100)]
        with self.memory(python_allocators=True) as memory:
            unknown = memory._hooks.stats()["unknown_frees"]
            before.clear()
            self.assertGreaterEqual(memory._hooks.stats()["unknown_frees"], unknown + 100)
            self.assertEqual(memory._hooks.stats()["replaced"], 0)

    def test_tracemalloc_before_and_after(self):
        for first, last in (("other", "other"), ("other", "ours"), ("ours", "other"), ("ours", "ours")):
            with self.subTest(first=first, last=last):
                memory = self.memory(python_allocators=True)
                starts = [tracemalloc.start, memory.start]
                for start in starts if first == "other" else reversed(starts):
                    start()
                thing = bytes(3000)
                self.assertIsNotNone(tracemalloc.get_object_traceback(thing))
                self.assertEqual(allocator_of(memory, thing)[1], sys.getsizeof(thing))
                stops = [memory.stop, tracemalloc.stop]
                for stop in stops if last == "other" else reversed(stops):
                    stop()
                self.assertEqual(bytes(3000), thing)

    def test_failed_allocations_are_counted(self):
        with self.memory(python_allocators=True) as memory:
            failed = memory._hooks.stats()["failed_allocations"]
            for _ in range(3):
                self.assertRaises(MemoryError, bytes, TOO_LARGE)
            self.assertEqual(memory._hooks.stats()["failed_allocations"], failed + 3)
        self.assertEqual([event.name for event in self.instants()], ["out of memory"], "one for many failures")

    def instants(self):
        return [event for event in stackweave.open(self.path).events() if event.role == "instant"]

    def test_every_free_is_recorded_while_garbage_is_collected(self):
        class Node:
            pass

        with self.memory(python_allocators=True) as memory:
            nodes = []
            for _ in range(2000):
                node = Node()
                node.itself, node.data = node, bytes(777)
                nodes.append(id(node.data))
                del node
                if len(nodes) % 50 == 0:
                    memory._hooks.snapshot()
            self.assertTrue(gc.isenabled())
            gc.collect()
            size = sys.getsizeof(bytes(777))
            live = [block for block in memory._hooks.blocks() if block["size"] == size]
        self.assertEqual(live, [])


class Threads(MemoryCase):
    def test_queries_and_waiting_threads_do_not_deadlock(self):
        """Threads wait for the writer inside allocations, with the GIL. Another one queries the writer without it."""
        stop = threading.Event()

        def allocate():
            while not stop.is_set():
                [bytes(100) for _ in range(200)]

        for mode in ("history", "aggregate"):
            with self.subTest(mode), self.memory(python_allocators=True, mode=mode, buffer="256KiB") as memory:
                stop.clear()
                threads = [threading.Thread(target=allocate, name=f"worker {number}") for number in range(4)]
                for thread in threads:
                    thread.start()
                for _ in range(20):
                    names = {row["thread_name"] for row in rows_of(memory)}
                    memory._hooks.write_snapshot()
                stop.set()
                for thread in threads:
                    thread.join()
                self.assertTrue({thread.name for thread in threads} <= names, names)

    def test_it_may_be_stopped_while_threads_are_busy(self):
        stop = threading.Event()

        def allocate():
            while not stop.is_set():
                [bytearray(number) for number in range(300)]

        threads = [threading.Thread(target=allocate) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            with self.memory(python_allocators=True) as memory:
                deadline = time.monotonic() + 60
                while memory.recorder_stats()["allocations"] < 1000 and time.monotonic() < deadline:
                    time.sleep(0.001)
            self.assertGreaterEqual(memory.recorder_stats()["allocations"], 1000)
            self.assertEqual(memory.recorder_stats()["left_over"], 0)
        stop.set()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())


HANGS = """
block = take(3_000_000)
recording = memory(dump_signal="USR1", {options}).start()
mine = take(2_000_000)
print("hangs", flush=True)
ctypes.PyDLL(None).sleep(1000)  # with the GIL
"""


class Dumps(MemoryCase):
    def test_a_program_that_hangs_with_the_gil_can_be_dumped(self):
        kinds = ("mode='aggregate'", "flush_every=1000", "mode='aggregate', flush_every=1000", "ring='1MB', dump_on=()")
        for number, options in enumerate(kinds):
            with self.subTest(options):
                path = os.path.join(os.path.dirname(self.path), f"hang-{number}.swv")
                code = BEGIN + HANGS.replace("{options}", options)
                command = [sys.executable, "-c", code, path, library_path()]
                with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
                    try:
                        self.assertEqual(program.stdout.readline(), "hangs\n")
                        program.send_signal(signal.SIGUSR1)
                        self.assertEqual(self.bytes_when_written(path), 2 * MEGABYTE)
                    finally:
                        program.kill()

    def bytes_when_written(self, path):
        """Waits until the writer has noticed the signal. Returns the bytes of the library in the file."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(0.05)
            rows = of_library(stackweave.open(path).memory().leaks()) if os.path.exists(path) else []
            if rows:
                return sum(row.bytes for row in rows)
        raise AssertionError("nothing was written")


class Ends(MemoryCase):
    def test_the_interpreter_ends_while_objects_are_recorded(self):
        for extra in (
            "",
            "recording.pause()",
            "threading.Thread(target=lambda: [bytes(9) for _ in range(10**7)], daemon=True).start()",
        ):
            with self.subTest(extra):
                self.run_program(
                    f"""
recording = memory(overwrite=True, python_allocators=True).start()
class Last:
    def __del__(self):
        self.more = [bytes(100) for _ in range(1000)]
sys.last = Last()
{extra}
"""
                )
                self.assertGreater(stackweave.open(self.path).memory().totals().allocations, 0)

    def test_a_recorder_that_is_not_stopped_ends_with_its_last_reference(self):
        options = {**OPTIONS, "python_allocators": True}
        with stackweave.Recorder(self.path) as recording:
            for _ in range(3):
                recorder = stackweave._native.AllocationHooks(recording, options)
                recorder.start()
                self.assertRaises(stackweave.StackweaveError, recorder.start)
                other = stackweave._native.AllocationHooks(recording, options)
                self.assertRaises(stackweave.StackweaveError, other.start)
                del recorder

    def test_calls_before_the_start_are_refused(self):
        recording = stackweave.Recorder(self.path)
        recorder = stackweave._native.AllocationHooks(recording, OPTIONS)
        for call in (recorder.snapshot, recorder.pause, recorder.stop, recorder.stats, recorder.start):
            with self.assertRaises(stackweave.StackweaveError):
                call()
        for wrong in ({"mode": "some"}, {"mode": "sampled"}):
            self.assertRaises(ValueError, stackweave._native.AllocationHooks, recording, OPTIONS | wrong)
        for wrong in ({"colour": "red"}, {"native": None}):
            self.assertRaises(
                stackweave.StackweaveError, stackweave._native.AllocationHooks, recording, OPTIONS | wrong
            )


class Tags(MemoryCase):
    def test_setting_a_tag_returns_the_one_before(self):
        with self.memory() as memory:
            recorder = memory._hooks
            self.assertIsNone(recorder.set_tag("one"))
            self.assertEqual(recorder.set_tag("zwei \u2764"), "one")
            block = self.take(1000)
            self.assertEqual(recorder.set_tag(None), "zwei \u2764")
            self.assertEqual(recorder.block(block)["tag"], "zwei \u2764")
            self.assertIsNone(recorder.set_tag(None))
            self.assertRaises(TypeError, recorder.set_tag, 5)
            self.give(block)


if __name__ == "__main__":
    unittest.main()
