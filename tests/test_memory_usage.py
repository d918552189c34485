"""Views show figures by stack: rows, functions, trees and tables."""

import unittest

import stackweave
from stackweave._native import _rebuild_frame, visible_frames
from stackweave._reading.memory_views import MemoryViews
from stackweave._sizes import count_text, duration_text, size_text
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

FIGURES = ("live_blocks", "live_bytes", "peak_blocks", "peak_bytes")
TOTALS = (*FIGURES, "allocations", "bytes", "temporary", "temporary_bytes", "frees", "unknown_frees", "replaced")


def frame(name, line, file="app.py"):
    return _rebuild_frame(("python", name, name, file, None), (line, 1, None, None, None, False, None))


def native(name, module):
    return _rebuild_frame(("native", name, None, None, module), (None, None, None, None, None, False, 4096))


class Stack:
    def __init__(self, *frames):
        self.frames = frames


class Views(MemoryViews):
    """Has views of the given rows, as if they had been recorded."""

    is_estimated = False

    def __init__(self, rows, **totals):
        self.rows, self.devices = rows, []
        sums = dict.fromkeys(TOTALS, 0) | {field: sum(row[field] for row in rows) for field in FIGURES}
        device = {"device": -1, "totals": {**sums, "peak_time": 1.5, **totals}, "rows": rows, "sizes": []}
        self.devices.append(device)

    def _memory_devices(self, rows):
        return self.devices

    def _memory_now(self):
        return 2.5

    def _is_estimated(self):
        return self.is_estimated


def row(stack, *figures, allocator="malloc", tag=None, thread=7, thread_name="MainThread"):
    origin = {"stack": stack, "allocator": allocator, "tag": tag, "thread": thread, "thread_name": thread_name}
    zeros = {"allocations": 0, "bytes": 0, "temporary": 0, "temporary_bytes": 0}
    return {**origin, **zeros, **dict(zip(FIGURES, figures))}


MAIN, LOAD, LOAD_AGAIN, PARSE = frame("<module>", 30), frame("load", 20), frame("load", 21), frame("parse", 10)
C = native("inflate", "libz.so.1")
ROWS = [
    row(Stack(C, PARSE, LOAD, MAIN), 0, 0, 2, 600),
    row(Stack(PARSE, LOAD_AGAIN, MAIN), 1, 300, 1, 300, allocator="calloc", tag="warm"),
    row(Stack(MAIN), 1, 50, 1, 50),
    row(None, 1, 50, 1, 50, thread=8, thread_name="worker"),
]


class Rows(unittest.TestCase):
    def test_each_view_has_its_own_figures(self):
        views = Views(ROWS)
        peak, leaks = views.peak(), views.leaks()
        self.assertEqual((peak.bytes, peak.blocks, peak.time, peak.name), (1000, 5, 1.5, "peak"))
        self.assertEqual((leaks.bytes, leaks.blocks, leaks.time), (400, 3, 2.5))
        self.assertEqual([row.bytes for row in peak], [600, 300, 50, 50])
        self.assertEqual([row.bytes for row in leaks.rows], [300, 50, 50])
        self.assertEqual((len(peak), len(leaks)), (4, 3))
        self.assertEqual([row.bytes for row in views.current()], [row.bytes for row in leaks])

    def test_a_row_has_its_function_stack_and_thread(self):
        first, second, _third, last = Views(ROWS).peak()
        self.assertEqual((first.name, first.frame, first.allocator, first.tag), ("inflate", C, "malloc", None))
        self.assertEqual((second.name, second.tag, second.blocks), ("parse", "warm", 1))
        self.assertEqual(second.stack, (PARSE, LOAD_AGAIN, MAIN))
        self.assertEqual((last.name, last.frame, last.stack, last.thread_name), (None, None, (), "worker"))

    def test_frames_of_the_interpreter_are_hidden(self):
        hidden = [
            native("_PyEval_EvalFrameDefault", "libpython3.12.so.1.0"),
            native("list_append", "python3.13"),
            native("main", "python"),
            native("__libc_start_main_impl", "libc.so.6"),
            native("start_thread", "libc.so.6"),
            native("capture", "_native.abi3.so"),
            frame("_find_and_load", 1, "<frozen importlib._bootstrap>"),
            frame("start", 1, stackweave.__file__),
        ]
        seen = [C, native("strdup", "libc.so.6"), PARSE, frame("get", 3, "/usr/lib/python3.12/json/decoder.py")]
        self.assertEqual(list(visible_frames([*hidden, *seen])), seen)

    def test_each_device_has_its_own_figures(self):
        views = Views(ROWS)
        views.devices.append({**views.devices[0], "device": 3, "rows": ROWS[:1]})
        self.assertEqual(len(views.peak(device=3)), 1)
        with self.assertRaisesRegex(stackweave.RecordingError, "nothing was recorded about memory of device 4"):
            views.peak(device=4)


class Functions(unittest.TestCase):
    def test_top_has_self_and_total_of_functions(self):
        top = {cost.name: (cost.self, cost.total, cost.blocks) for cost in Views(ROWS).peak().top()}
        self.assertEqual(
            top,
            {
                "inflate": (600, 600, 2),
                "parse": (300, 900, 1),
                "<module>": (50, 950, 1),
                "load": (0, 900, 0),
                "?": (50, 50, 1),
            },
        )
        first = Views(ROWS).peak().top(1)[0]
        self.assertEqual((first.name, first.filename, first.lineno), ("inflate", "libz.so.1", None))

    def test_a_recursion_counts_once(self):
        stack = Stack(PARSE, frame("parse", 11), frame("parse", 12), MAIN)
        top = {cost.name: cost.total for cost in Views([row(stack, 0, 0, 1, 100)]).peak().top()}
        self.assertEqual(top, {"parse": 100, "<module>": 100})

    def test_the_tree_adds_up(self):
        tree = Views(ROWS).peak().tree()
        self.assertEqual((tree.name, tree.total, tree.self, tree.blocks, tree.measure), (None, 1000, 50, 5, "peak"))
        (main,) = tree.children
        self.assertEqual((main.name, main.total, main.self, main.lineno), ("<module>", 950, 50, 30))
        self.assertEqual([(child.lineno, child.total) for child in main.children], [(20, 600), (21, 300)])
        for node in (tree, main, *main.children):
            self.assertEqual(node.total, node.self + sum(child.total for child in node.children))
        shown = str(tree).splitlines()
        self.assertEqual(shown[0], "    1000 B  peak")
        self.assertIn("inflate  [libz.so.1]", shown[4])

    def test_groups_add_up(self):
        views = Views(ROWS)
        self.assertEqual(
            [(group.name, group.thread, group.peak_bytes, group.live_bytes) for group in views.threads()],
            [("MainThread", 7, 950, 350), ("worker", 8, 50, 50)],
        )
        self.assertEqual(
            [(group.name, group.thread, group.peak_bytes) for group in views.tags()],
            [(None, None, 700), ("warm", None, 300)],
        )


class Text(unittest.TestCase):
    def test_the_table(self):
        self.assertEqual(
            str(Views(ROWS).peak()),
            """\
peak: 1000 B in 5 blocks, 1.50 s after the start
     bytes   share     blocks  allocated by
     600 B   60.0%          2  inflate  [libz.so.1]  (thread MainThread)
                               by parse  app.py:10
                               by load  app.py:20
                               by <module>  app.py:30
     300 B   30.0%          1  parse  app.py:10  (calloc, tag 'warm', thread MainThread)
                               by load  app.py:21
                               by <module>  app.py:30
      50 B    5.0%          1  <module>  app.py:30  (thread MainThread)
      50 B    5.0%          1  no stack  (thread worker)""",
        )

    def test_it_can_be_shorter(self):
        self.assertEqual(
            Views(ROWS[:3]).peak().table(limit=1, depth=2),
            """\
peak: 950 B in 4 blocks, 1.50 s after the start
     bytes   share     blocks  allocated by
     600 B   63.2%          2  inflate  [libz.so.1]
                               by parse  app.py:10
                               and 2 more callers
     350 B in 2 more stacks""",
        )

    def test_stacks_that_look_the_same_are_one(self):
        internals = native("list_resize", "libpython3.12.so.1.0")
        rows = [row(Stack(internals, PARSE, MAIN), 1, 100, 1, 100), row(Stack(PARSE, MAIN), 1, 50, 1, 50)]
        self.assertEqual(str(Views(rows).leaks()).splitlines()[2], "     150 B  100.0%          2  parse  app.py:10")

    def test_the_inside_of_native_modules_is_left_out(self):
        inside = [native(name, "libz.so.1") for name in ("alloc", "grow", "inflate")]
        other = [native(name, "ext.so") for name in ("helper", "entry")]
        shown = str(Views([row(Stack(*inside, *other, PARSE, MAIN), 1, 100, 1, 100)]).leaks()).splitlines()[2:]
        self.assertEqual(
            [line[31:] for line in shown],
            [
                "alloc  [libz.so.1]",
                "by inflate  [libz.so.1]",
                "by entry  [ext.so]",
                "by parse  app.py:10",
                "by <module>  app.py:30",
            ],
        )

    def test_a_call_through_many_native_modules_is_shown_by_its_entry(self):
        through = [native(name, f"lib{name}.so") for name in ("allocator", "device", "kernel", "dispatch", "binding")]
        shown = str(Views([row(Stack(*through, PARSE, MAIN), 1, 100, 1, 100)]).leaks()).splitlines()[2:]
        expected = ["binding  [libbinding.so]", "by parse  app.py:10", "by <module>  app.py:30"]
        self.assertEqual([line[31:] for line in shown], expected)

    def test_a_view_without_blocks_is_one_line(self):
        self.assertEqual(str(Views([]).leaks()), "not freed: 0 B in 0 blocks")
        self.assertEqual(str(Views([]).temporary()), "freed at once: 0 B in 0 blocks")

    def test_estimates_are_described_as_such(self):
        views = Views(ROWS[2:3])
        views.is_estimated = True
        self.assertEqual(str(views.current()).splitlines()[0], "in use: 50 B in 1 block (estimates)")

    def test_numbers_are_rounded_for_people(self):
        sizes = [0, 1023, 1024, 1536, 10_240, 102_400, 1_048_000, 1 << 20, 5 << 40, -1536]
        self.assertEqual(
            [size_text(size) for size in sizes],
            "0 B,1023 B,1.00 KiB,1.50 KiB,10.0 KiB,100 KiB,1023 KiB,1.00 MiB,5.00 TiB,-1.50 KiB".split(","),  # noqa: SIM905
        )
        self.assertEqual([count_text(1, "block"), count_text(2000, "block")], ["1 block", "2,000 blocks"])
        durations = [0.0123, 1.5, 75.2, 3725]
        self.assertEqual([duration_text(time) for time in durations], ["12 ms", "1.50 s", "1 min 15 s", "1 h 2 min"])
