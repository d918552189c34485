"""The woven order is the order in which code called code."""

import ctypes
import functools
import itertools
import sys
import threading
import unittest
from itertools import dropwhile

import stackweave
from tests.support import kinds

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def between(captured, inner, outer):
    """Returns the frames between the innermost frame with one name and the next with the other, outward."""
    names = [frame.name for frame in captured.frames]
    start = names.index(inner)
    return captured.frames[start + 1 : names.index(outer, start)]


class Order(unittest.TestCase):
    def test_native_frames_stand_between_python_frames_that_native_code_called(self):
        def key(_value):
            return results.append(stackweave.capture()) or 0

        def sort():
            sorted([2, 1], key=key)

        def outermost():
            sort()

        results = []
        outermost()
        for captured in results:
            self.assertEqual(captured.frames[0].name, "key")
            frames = between(captured, "key", "sort")
            self.assertGreaterEqual(len(frames), 2, "the sort and the eval loop that runs key")
            self.assertEqual({frame.kind for frame in frames}, {"native"})

    def test_python_frames_of_one_eval_loop_stand_together(self):
        def inner():
            return stackweave.capture()

        def middle():
            return inner()

        def outer():
            return middle()

        frames = between(outer(), "inner", "outer")
        python = [frame.name for frame in frames if frame.kind == "python"]
        self.assertEqual(python, ["middle"])
        if sys.version_info >= (3, 11):
            self.assertEqual(len(frames), 1, "Python calls Python without native code in between")
        else:
            self.assertGreater(len(frames), 1, "each Python frame has an eval loop of its own")

    def test_a_callback_out_of_the_c_library_stands_inside_it(self):
        def compare(_left, _right):
            return results.append(stackweave.capture()) or 0

        def sort():
            numbers = (ctypes.c_int * 3)(3, 1, 2)
            ctypes.CDLL(None).qsort(numbers, 3, ctypes.sizeof(ctypes.c_int), COMPARE(compare))

        results = []
        sort()
        modules = [frame.module or "" for frame in between(results[0], "compare", "sort")]
        libraries = [module for module in modules if "libc.so" in module]
        self.assertTrue(libraries, f"qsort is not there: {modules}")
        first, last = modules.index(libraries[0]), len(modules) - modules[::-1].index(libraries[-1])
        self.assertIn("_ctypes", "".join(modules[:first]), "ctypes calls Python inside qsort")
        self.assertIn("_ctypes", "".join(modules[last:]), "ctypes calls qsort")
        self.assertEqual(set(modules[first:last]), {libraries[0]})

    def test_nested_callbacks_alternate(self):
        def descend(depth):
            if depth == 0:
                return stackweave.capture()
            return functools.reduce(lambda _, __: descend(depth - 1), [1, 2], None)

        captured = descend(6)
        runs = [kind for kind, before in zip(kinds(captured), [None, *kinds(captured)]) if kind != before]
        self.assertGreaterEqual(runs.count("python"), 7)
        self.assertEqual(runs[::2], ["python"] * len(runs[::2]))
        names = [frame.name for frame in captured.frames if frame.name in {"descend", "<lambda>"}]
        self.assertEqual(names, ["descend"] + ["<lambda>", "descend"] * 6)

    def test_the_innermost_frame_is_the_caller(self):
        def caller():
            return [
                stackweave.capture(),
                stackweave.capture(native=False),
                stackweave.traceback_of(stackweave.current_stack_id()),
                functools.partial(stackweave.capture)(),
            ]

        for captured in caller():
            self.assertEqual(captured.frames[0].name, "caller")

    def test_the_outermost_frame_is_native(self):
        captured = []
        thread = threading.Thread(target=lambda: captured.append(stackweave.capture()))
        thread.start()
        thread.join()
        captured.append(stackweave.capture())
        for traceback in captured:
            order = kinds(traceback)
            last_python = len(order) - order[::-1].index("python")
            self.assertGreater(len(order), last_python, "the thread's own start is native")


class Parts(unittest.TestCase):
    def test_parts_have_the_frames_of_the_full_stack(self):
        def everything(_value):
            parts.extend([stackweave.capture(), stackweave.capture(native=False), stackweave.capture(python=False)])

        parts = []
        list(map(everything, [0]))
        whole, python, native = parts
        self.assertEqual(set(kinds(python)), {"python"})
        self.assertEqual(set(kinds(native)), {"native"})
        names = [frame.name for frame in whole.frames if frame.kind == "python"]
        self.assertEqual([frame.name for frame in python.frames], names)
        # The innermost eval loop is at another call in each of the three.
        frames = [frame for frame in whole.frames if frame.kind == "native"]
        callers = list(dropwhile(lambda frame: frame.address == frames[0].address, frames))
        self.assertEqual(list(native.frames[-len(callers) :]), callers)
        self.assertFalse([frame for frame in native.frames if "_native" in (frame.module or "")])

    def test_a_limit_cuts_outside_of_deep_native_code(self):
        """The number of native frames inside the innermost Python frame does not matter."""

        def caller(**limit):
            nested = iter(functools.partial(stackweave.capture, **limit), None)
            for _ in range(300):
                nested = itertools.islice(nested, 1)
            return next(nested)

        def capture(limit):
            return functools.reduce(lambda _, __: caller(limit=limit), [0], None)

        limits = [None, 1, 2, 3, 6, 20]
        for _ in range(100):
            whole, *cuts = [capture(limit) for limit in limits]
        self.assertEqual(whole.stop_reason, "end of stack")
        for cut, limit in zip(cuts, limits[1:]):
            self.assertEqual((cut.frames, cut.stop_reason), (whole.frames[: len(cut.frames)], "limit reached"))
            self.assertGreaterEqual(len(cut.frames), limit, "inlined calls come on top")

    def test_a_capture_without_python_and_native_frames_is_empty(self):
        captured = stackweave.capture(python=False, native=False)
        self.assertEqual((captured.frames, bool(captured), len(captured)), ((), False, 0))

    def test_skip_and_limit_cut_the_stack(self):
        def capture_all(native):
            requests = ({}, {"skip": 1}, {"limit": 1}, {"skip": 1, "limit": 2}, {"limit": 0})
            return [stackweave.capture(native=native, **request) for request in requests]

        for native in (True, False):
            for _ in range(100):
                whole, skipped, limited, both, none = capture_all(native)
            self.assertEqual(skipped.frames, whole.frames[1:])
            self.assertEqual(limited.frames, whole.frames[:1])
            self.assertEqual(both.frames[0], whole.frames[1])
            self.assertEqual(none.frames, ())
            reasons = [traceback.stop_reason for traceback in (whole, skipped, limited, both, none)]
            self.assertEqual(reasons, ["end of stack"] * 2 + ["limit reached"] * 3)
        self.assertEqual(stackweave.capture(skip=10**30).frames, ())
        self.assertEqual(stackweave.capture(limit=10**30).stop_reason, "end of stack")
