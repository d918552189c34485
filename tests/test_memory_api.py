"""stackweave.memory() counts correctly, and can be started, queried, read and stopped in any order."""

import ctypes
import gc
import os
import threading
import unittest

import stackweave
from tests.memory_support import (
    Count,
    MemoryCase,
    by_allocator,
    bytes_of_library,
    figures_of_library,
    of_library,
    views_of,
)

MEGABYTE = 1_000_000
PAGE = os.sysconf("SC_PAGE_SIZE")


class Figures(MemoryCase):
    def test_peak_leaks_and_current(self):
        with self.memory() as memory:
            blocks = [self.take(MEGABYTE) for _ in range(10)]
            for block in blocks[:6]:
                self.give(block)
            self.assertEqual(bytes_of_library(memory.live().peak()), 10 * MEGABYTE)
            self.assertEqual(bytes_of_library(memory.live().current()), 4 * MEGABYTE)
            for block in blocks[6:9]:
                self.give(block)
        self.assertEqual(bytes_of_library(memory.recording.peak()), 10 * MEGABYTE)
        self.assertEqual(bytes_of_library(memory.recording.leaks()), MEGABYTE)
        self.assertEqual([row.blocks for row in of_library(memory.recording.leaks())], [1])
        self.give(blocks[9])

    def test_a_churn_is_counted_to_the_byte(self):
        for mode in ("history", "aggregate"):
            with self.subTest(mode):
                count = Count()
                with self.memory(mode=mode) as memory:
                    churned = self.library.churn(42, 50_000, count)
                    live = figures_of_library(memory)
                read = figures_of_library(memory)
                for name in ("allocations", "bytes", "live_blocks", "live_bytes"):
                    self.assertEqual((live[name], read[name]), (getattr(count, name),) * 2, name)
                self.library.free_churned(churned)

    def test_the_peak_of_a_churn_is_exact_if_nothing_else_allocates(self):
        count = Count()
        gc.collect()
        with self.memory() as memory:
            churned = self.library.churn(7, 50_000, count)
            totals = memory.live().totals()
        others = totals.peak_bytes - count.peak_bytes
        self.assertGreaterEqual(others, 0)
        self.assertLess(others, 100_000, "what Python allocates for the call")
        self.library.free_churned(churned)

    def test_every_allocator_has_its_name(self):
        library, size = self.library, 10_000
        with self.memory() as memory:
            blocks = [
                library.take(size),
                library.take_zeroed(10, size),
                library.resize(None, size),
                library.resize_array(None, 3, size),
                library.take_posix(64, size),
                library.take_aligned(64, 2 * PAGE),
                library.take_memaligned(64, size),
                library.take_pages(size),
                library.take_whole_pages(size),
            ]
            mapped = library.map(16 * PAGE)
            moved = library.remap(mapped, 16 * PAGE, 8 * PAGE)
        found = by_allocator(memory.recording.leaks())
        self.assertEqual(found.pop("mremap", None) or found.pop("mmap"), (8 * PAGE, 1))
        self.assertEqual(
            found,
            {
                "malloc": (size, 1),
                "calloc": (10 * size, 1),
                "realloc": (size, 1),
                "reallocarray": (3 * size, 1),
                "posix_memalign": (size, 1),
                "aligned_alloc": (2 * PAGE, 1),
                "memalign": (size, 1),
                "valloc": (size, 1),
                "pvalloc": (size, 1),
            },
        )
        for block in blocks:
            self.give(block)
        library.unmap(moved, 8 * PAGE)

    def test_a_block_that_is_resized_counts_once(self):
        with self.memory() as memory:
            block = self.take(1000)
            for size in (2000, 100_000, 50, 3 * MEGABYTE):
                block = self.library.resize(block, size)
            self.assertEqual(by_allocator(memory.live().current()), {"realloc": (3 * MEGABYTE, 1)})
            self.give(block)
            self.assertEqual(by_allocator(memory.live().current()), {})

    def test_blocks_from_before_the_start_are_not_counted(self):
        block = self.take(MEGABYTE)
        with self.memory() as memory:
            before = memory.live().totals().unknown_frees
            self.give(block)
            self.assertGreater(memory.live().totals().unknown_frees, before)
        self.assertEqual(figures_of_library(memory)["allocations"], 0)

    def test_stacks_are_python_and_native(self):
        with self.memory() as memory:
            block = self.take(MEGABYTE)
        (row,) = of_library(memory.recording.leaks())
        kinds = [frame.kind for frame in row.stack]
        self.assertEqual((row.stack[0].name, row.stack[0].module, kinds[0]), ("take", "blocks.so", "native"))
        names = [frame.name for frame in row.stack if frame.kind == "python"]
        self.assertEqual(names[:2], ["take", "test_stacks_are_python_and_native"])
        self.assertEqual(row.name, "take")
        self.give(block)

    def test_stacks_can_be_of_python_only_and_short(self):
        with self.memory(native=False, depth=2) as memory:
            block = self.take(MEGABYTE)
        row = memory.recording.leaks().rows[0]
        self.assertEqual([frame.kind for frame in row.stack], ["python"] * 2)
        self.assertEqual([frame.name for frame in row.stack], ["take", "test_stacks_can_be_of_python_only_and_short"])
        self.give(block)

    def test_temporary_blocks(self):
        with self.memory() as memory:
            for _ in range(100):
                self.give(self.take(5000))
            blocks = [self.take(5000) for _ in range(50)]
            for block in blocks:
                self.give(block)
        temporary = of_library(memory.recording.memory().temporary())
        self.assertEqual(sum(row.blocks for row in temporary) // 10, 10, "about 100: Python allocates some in between")

    def test_size_classes(self):
        with self.memory() as memory:
            before = {size.most: size.allocations for size in memory.live().sizes()}
            blocks = [self.take(size) for size in (5_000_000,) * 3 + (9_000_000,)]
            after = {size.most: size for size in memory.live().sizes()}
        self.assertEqual(after[1 << 23].allocations - before.get(1 << 23, 0), 3)
        self.assertEqual(after[1 << 24].allocations - before.get(1 << 24, 0), 1)
        self.assertEqual(after[1 << 24].live_bytes, 9_000_000)
        for block in blocks:
            self.give(block)

    def test_threads(self):
        pointers = (ctypes.c_void_p * 8)()

        def work():
            blocks.extend(self.take(MEGABYTE) for _ in range(3))
            self.library.take_in_other_thread(pointers, 8, MEGABYTE)

        blocks = []
        with self.memory() as memory:
            thread = threading.Thread(target=work, name="worker")
            thread.start()
            thread.join()
            blocks.append(self.take(MEGABYTE))
        used = {}
        for row in of_library(memory.recording.leaks()):
            used[row.thread, row.thread_name] = used.get((row.thread, row.thread_name), 0) + row.bytes
        self.assertEqual(used[threading.get_native_id(), "MainThread"], MEGABYTE)
        self.assertEqual(used[thread.native_id, "worker"], 3 * MEGABYTE)
        self.assertEqual(sum(used.values()), 12 * MEGABYTE, "a thread unknown to Python allocated the rest")
        groups = {group.name: group.live_bytes for group in memory.recording.memory().threads()}
        self.assertGreaterEqual(groups["worker"], 3 * MEGABYTE)
        for block in (*blocks, *pointers):
            self.give(block)

    def test_a_block_may_be_freed_by_another_thread(self):
        with self.memory() as memory:
            blocks = [self.take(1000) for _ in range(1000)]
            thread = threading.Thread(target=lambda: [self.give(block) for block in blocks])
            thread.start()
            thread.join()
            self.assertEqual(figures_of_library(memory)["live_bytes"], 0)


class PythonAllocators(MemoryCase):
    def test_objects_are_seen(self):
        def make():
            return [object() for _ in range(10_000)]

        with self.memory(python_allocators=True) as memory:
            kept = make()
            rows = [row for row in memory.live().current() if "make" in [frame.name for frame in row.stack]]
        objects = sum(row.blocks for row in rows if row.allocator.startswith("PyObject"))
        self.assertGreaterEqual(objects, len(kept))
        self.assertGreaterEqual(sum(row.bytes for row in rows), 16 * len(kept))

    def test_without_them_only_larger_blocks_are_seen(self):
        with self.memory() as memory:
            kept = [object() for _ in range(100_000)]
        self.assertEqual({row.allocator for row in memory.recording.leaks() if row.allocator.startswith("Py")}, set())
        self.assertGreaterEqual(memory.recording.leaks().bytes, 8 * len(kept), "the list")

    def test_the_traceback_of_an_object(self):
        with self.memory(python_allocators=True):
            text = bytes(bytearray(200))
            found = stackweave.allocation_traceback(id(text))
        self.assertEqual(found.frames[0].kind, "native")
        python = next(frame for frame in found.frames if frame.kind == "python")
        self.assertEqual(python.name, "test_the_traceback_of_an_object")


class Tags(MemoryCase):
    def test_tags_nest(self):
        with self.memory() as memory:
            with stackweave.memory_tag("outer"):
                blocks = [self.take(1 * MEGABYTE)]
                with stackweave.memory_tag("inner"):
                    blocks.append(self.take(2 * MEGABYTE))
                blocks.append(self.take(4 * MEGABYTE))
            blocks.append(self.take(8 * MEGABYTE))
            live = self.tags(memory)
        self.assertEqual(live, {"outer": 5 * MEGABYTE, "inner": 2 * MEGABYTE, None: 8 * MEGABYTE})
        self.assertEqual(self.tags(memory), live)
        groups = {group.name: group.live_bytes for group in memory.recording.memory().tags()}
        self.assertGreaterEqual(groups["outer"], 5 * MEGABYTE)
        for block in blocks:
            self.give(block)

    def tags(self, memory):
        found = {}
        for row in of_library(views_of(memory).leaks()):
            found[row.tag] = found.get(row.tag, 0) + row.bytes
        return found

    def test_a_tag_applies_to_its_thread(self):
        blocks, ready, go_on = [], threading.Event(), threading.Event()

        def work():
            with stackweave.memory_tag("thread"):
                ready.set()
                go_on.wait(60)
                blocks.append(self.take(MEGABYTE))

        with self.memory() as memory:
            thread = threading.Thread(target=work)
            thread.start()
            ready.wait(60)
            blocks.append(self.take(2 * MEGABYTE))
            go_on.set()
            thread.join()
        self.assertEqual(self.tags(memory), {"thread": MEGABYTE, None: 2 * MEGABYTE})
        for block in blocks:
            self.give(block)

    def test_decorated_functions_and_the_steps_of_generators(self):
        @stackweave.memory_tag("call")
        def call():
            blocks.append(self.take(MEGABYTE))

        @stackweave.memory_tag("step")
        def steps():
            while True:
                blocks.append(self.take(2 * MEGABYTE))
                yield

        blocks = []
        with self.memory() as memory:
            call()
            generator = steps()
            next(generator)
            blocks.append(self.take(4 * MEGABYTE))
            next(generator)
        self.assertEqual(self.tags(memory), {"call": MEGABYTE, "step": 4 * MEGABYTE, None: 4 * MEGABYTE})
        for block in blocks:
            self.give(block)

    def test_without_a_recorder_it_does_nothing(self):
        tag = stackweave.memory_tag("nothing")
        with tag, tag:
            pass
        with tag, self.memory() as memory:
            block = self.take(MEGABYTE)
        self.assertEqual(self.tags(memory), {None: MEGABYTE})
        self.give(block)
        with self.assertRaisesRegex(TypeError, "a memory tag must be a str, not int"):
            stackweave.memory_tag(1)
        self.assertEqual(repr(tag), "<stackweave.memory_tag 'nothing'>")

    def test_a_tag_outlives_its_recorder(self):
        with self.memory() as memory:
            with stackweave.memory_tag("x"):
                blocks = [self.take(MEGABYTE)]
                memory.stop()
                blocks.append(self.take(MEGABYTE))
        self.assertEqual(self.tags(memory), {"x": MEGABYTE})
        with self.memory() as memory:
            blocks.append(self.take(2 * MEGABYTE))
        self.assertEqual(self.tags(memory), {None: 2 * MEGABYTE}, "the tag of the first recording is gone")
        for block in blocks:
            self.give(block)


class Tracebacks(MemoryCase):
    def test_where_a_block_was_allocated(self):
        with self.memory():
            block = self.take(MEGABYTE)
            found = stackweave.allocation_traceback(block)
            self.assertIsInstance(found, stackweave.Traceback)
            self.assertEqual(next(frame.name for frame in found.frames if frame.kind == "python"), "take")
            self.give(block)
            self.assertIsNone(stackweave.allocation_traceback(block))

    def test_an_address_inside_a_mapping(self):
        with self.memory():
            block = self.library.map(4 * PAGE)
            self.assertEqual(stackweave.allocation_traceback(block + PAGE + 5).frames[0].name, "map")
            self.library.unmap(block, 4 * PAGE)

    def test_an_unknown_block_is_none(self):
        block = self.take(100)
        self.assertIsNone(stackweave.allocation_traceback(block), "there is no recorder")
        with self.memory():
            self.assertIsNone(stackweave.allocation_traceback(block), "it was allocated before the start")
            self.assertIsNone(stackweave.allocation_traceback(0))
        self.give(block)
        with self.assertRaisesRegex(TypeError, "an address must be an int, not str"):
            stackweave.allocation_traceback("x")

    def test_a_buffer_of_ctypes(self):
        with self.memory(python_allocators=True):
            buffer = ctypes.create_string_buffer(100_000)
            found = stackweave.allocation_traceback(ctypes.addressof(buffer))
        names = [frame.name for frame in found.frames if frame.kind == "python"]
        self.assertEqual(names[:2], ["create_string_buffer", "test_a_buffer_of_ctypes"])


class Options(unittest.TestCase):
    def test_wrong_options_are_refused_in_one_sentence(self):
        for options, sentence in [
            ({"mode": "all"}, 'mode must be "history", "aggregate" or "sampled", but is \'all\''),
            ({"sample_every": "often"}, 'sample_every must be a size like "64MB" or "1.5 GiB", but is \'often\''),
            ({"sample_every": 0}, "sample_every must be greater than 0 and less than 2**63 bytes, but is 0"),
            ({"native": 1}, "native must be a bool, not int"),
            ({"depth": 0}, "depth must be greater than 0 and less than 2**32, but is 0"),
            ({"temporary": "1"}, "temporary must be a whole number, not str"),
            ({"curve_every": -1}, "curve_every must be greater than 0 seconds, but is -1"),
            ({"dump_on": ["noon"]}, 'dump_on may hold "exit", "exception" and "memory-error", but not \'noon\''),
            ({"dump_signal": "HOP"}, "dump_signal must be a signal like \"USR1\", but is 'HOP'"),
            ({"dump_signal": 9}, 'dump_signal must be a signal like "USR1", but is 9'),
            ({"dump_signal": 1.5}, 'dump_signal must be a signal like "USR1", not float'),
            ({"dump_at_rss": []}, 'dump_at_rss must be a number of bytes or a size like "64MB", not list'),
            ({"sample_every": "1MB"}, 'sample_every needs mode="sampled"'),
            (
                {"mode": "aggregate", "ring": "1MB"},
                'ring keeps the last events, and mode="aggregate" writes none: leave one of them out',
            ),
        ]:
            with self.subTest(options):
                with self.assertRaises((TypeError, ValueError)) as caught:
                    stackweave.memory("out.swv", **options)
                self.assertEqual(str(caught.exception), sentence)
