"""With a frame evaluation function of another package (PEP 523), each Python frame is inside its own activation."""

import contextlib
import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import stackweave
from tests.support import Witness, WitnessCase

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "evaluator.c")
EVALUATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


def interpreter_function(name, result, *arguments):
    """Returns a function that 3.15 made public, by the name that it has here."""
    for prefix in ("PyUnstable_InterpreterState_", "_PyInterpreterState_"):
        if hasattr(ctypes.pythonapi, prefix + name):
            function = ctypes.pythonapi[prefix + name]
            function.restype, function.argtypes = result, arguments
            return function
    raise unittest.SkipTest(f"this Python has no {name}")


def interpreter():
    ctypes.pythonapi.PyInterpreterState_Get.restype = ctypes.c_void_p
    return ctypes.pythonapi.PyInterpreterState_Get()


def current_evaluator():
    return interpreter_function("GetEvalFrameFunc", ctypes.c_void_p, ctypes.c_void_p)(interpreter())


class CountingWitness(Witness):
    """Also records the number of active evaluators, as they count it themselves."""

    def __init__(self, depth):
        super().__init__()
        self.depth, self.depths = depth, []

    def __call__(self, *_args, **_kwargs):
        self.depths.append(self.depth.value + 1)  # One more for the call that captures.
        return super().__call__()


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Evaluators(WitnessCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = os.path.join(folder.name, "evaluator.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-g", "-o", path, SOURCE], check=True)
        cls.library = ctypes.CDLL(path)
        cls.own = current_evaluator()
        ctypes.c_void_p.in_dll(cls.library, "evaluator_next").value = cls.own
        cls.calls = ctypes.c_ulong.in_dll(cls.library, "evaluator_calls")
        cls.depth = ctypes.c_ulong.in_dll(cls.library, "evaluator_depth")

    def setUp(self):
        self.witness = CountingWitness(self.depth)

    @contextlib.contextmanager
    def installed(self):
        install = interpreter_function("SetEvalFrameFunc", None, ctypes.c_void_p, ctypes.c_void_p)
        install(interpreter(), ctypes.cast(self.library.evaluator, ctypes.c_void_p))
        try:
            yield
        finally:
            install(interpreter(), self.own)

    def assert_each_is_evaluated(self, names, without_evaluator=()):
        """Asserts that each Python frame since the test is inside the loop, and the loop inside the evaluator."""
        for (captured, _), depth in zip(self.witness.seen, self.witness.depths):
            frames = [frame for frame in captured.frames if not frame.inlined]
            self.assertEqual(sum(frame.name == "evaluator" for frame in frames), depth)
            test = next(number for number, frame in enumerate(frames) if frame.name.startswith("test_"))
            python = [number for number, frame in enumerate(frames[:test]) if frame.kind == "python"]
            self.assertLessEqual(names, {frames[number].name for number in python})
            evaluated = [number for number in python if frames[number].name not in without_evaluator]
            for number in evaluated:
                outside = [frame.name for frame in frames[number + 1 : number + 3]]
                self.assertEqual(outside[1:], ["evaluator"], (frames[number].name, outside))
                self.assertEqual(frames[number + 1].kind, "native")

    def test_each_python_frame_stands_inside_its_own_evaluator(self):
        def inner():
            return self.witness()

        def middle(_value):
            return inner()

        def outer():
            return [sorted([2, 1], key=middle), middle(0), functools.reduce(lambda _, value: middle(value), [1, 2])]

        before = self.calls.value
        with self.installed():
            for _ in range(20):  # Hot enough for specialised calls.
                outer()
        self.assertGreater(self.calls.value, before + 100)
        self.assert_same_stacks(80)
        self.assert_each_is_evaluated({"inner", "middle", "outer"})

    def test_generators_and_exceptions_stand_inside_their_evaluators(self):
        def generate():
            try:
                self.witness()
                yield 1
            finally:
                self.witness()

        def drive():
            generator = generate()
            next(generator)
            with contextlib.suppress(KeyError):
                generator.throw(KeyError())

        with self.installed():
            drive()
        self.assert_same_stacks(2)
        self.assert_each_is_evaluated({"generate", "drive"})

    def test_instances_made_hot_stand_inside_their_evaluators(self):
        witness = self.witness

        class Thing:
            def __init__(self):
                witness()

        def make():
            return Thing()

        with self.installed():
            for _ in range(50):
                make()
        self.assert_same_stacks(50)
        # 3.13 runs a hot __init__ in its caller's loop, whichever function evaluates frames.
        self.assert_each_is_evaluated({"__init__", "make"}, {"__init__"} if sys.version_info[:2] == (3, 13) else ())

    def test_the_order_is_as_before_when_the_evaluator_is_gone(self):
        def inner():
            return stackweave.capture()

        def outer():
            return inner()

        with self.installed():
            self.assertEqual([frame.name for frame in outer().frames].count("evaluator"), 2)
        self.assertEqual(current_evaluator(), self.own)
        calls = self.calls.value
        for _ in range(50):
            captured = outer()
        self.assertEqual(self.calls.value, calls)
        names = [frame.name for frame in captured.frames]
        self.assertNotIn("evaluator", names)
        if sys.version_info >= (3, 11):
            self.assertEqual(names.index("outer"), 1, "one loop runs both again")

    def test_frames_from_before_the_evaluator_are_not_inside_one(self):
        def inner():
            return stackweave.capture()

        with self.installed():
            captured = inner()
        names = [frame.name for frame in captured.frames if frame.kind == "python" or frame.name == "evaluator"]
        self.assertEqual(names[:3], ["inner", "evaluator", "test_frames_from_before_the_evaluator_are_not_inside_one"])
        self.assertEqual(names.count("evaluator"), 1)
