"""The claims of PyTorch's own tests hold for our tracebacks. Their frames are in order, unlike those of PyTorch.

Skipped where torch is not installed.
"""

import ctypes
import importlib
import random
import sys
import unittest
import warnings

import stackweave
import stackweave.torch
from tests.test_torch_inductor import BEHIND, GENERATED, LINEMAP, generated, inductor
from tests.torch_dynamo_support import HAS_TORCH

MODES = ("dladdr", "addr2line", "fast")


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class TracebackCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global torch, profiler, CapturedTraceback
        import torch
        from torch._C import _profiler as profiler
        from torch.utils._traceback import CapturedTraceback

    def setUp(self):
        block = stackweave.torch.installed()
        block.__enter__()
        self.addCleanup(block.__exit__, None, None, None)

    def names_here(self, frames):
        """Returns the functions of this file up to the test, innermost first."""
        names = [frame["name"] for frame in frames if frame["filename"] == __file__]
        return names[: names.index(self._testMethodName) + 1]

    def in_autograd(self, take):
        class Taking(torch.autograd.Function):
            @staticmethod
            def forward(context, value):
                return inner(value)

            @staticmethod
            def backward(context, gradient):
                return gradient

        def inner(value):
            found.append(take())
            return value * 2

        def f3(value):
            return Taking.apply(value)

        def f2(value):
            return f3(value)

        def f1(value):
            return f2(value)

        found = []
        f1(torch.ones(2, requires_grad=True))
        return found[0]


class ClaimsOfTorchTests(TracebackCase):
    def test_direct_traceback(self):
        frames = profiler.symbolize_tracebacks([profiler.gather_traceback(True, True, True)])[0]
        text = str(frames)
        self.assertIn("test_torch_traceback.py", text)
        # Torch's frames start inside its own unwinder, ours with the caller.
        self.assertEqual(frames[0]["name"], "test_direct_traceback")
        self.assertIn("_PyEval_EvalFrameDefault", text)

    def test_captured_traceback(self):
        self.assertIn("test_captured_traceback", "".join(CapturedTraceback.extract().format()))

    def test_captured_traceback_format_all(self):
        formatted = CapturedTraceback.format_all([CapturedTraceback.extract(), CapturedTraceback.extract()])
        self.assertEqual(len(formatted), 2)
        self.assertIn("test_captured_traceback_format_all", "".join(formatted[0]))

    def test_captured_traceback_format_all_with_one_formatted_before(self):
        first = CapturedTraceback.extract()
        first.format()
        formatted = CapturedTraceback.format_all([first, CapturedTraceback.extract()])
        self.assertEqual(len(formatted), 2)
        self.assertIn("_with_one_formatted_before", "".join(formatted[1]))

    def test_fuzz_symbolize(self):
        """Symbolizes random addresses in loaded code, some of them outside of functions."""
        generator = random.Random(13)
        ranges = []
        with open("/proc/self/maps") as maps:
            for line in maps:
                ends, permissions, *_ = line.split()
                if "x" in permissions and "/" in line:
                    ranges.append([int(end, 16) for end in ends.split("-")])
        addresses = [generator.randrange(*generator.choice(ranges)) for _ in range(200)]
        answers = [profiler.symbolize_addresses(addresses, mode) for mode in MODES]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        self.assertEqual(len(answers[0]), 200)
        for filename, line, function in answers[0]:
            self.assertEqual((type(filename), type(line), type(function)), (str, int, str))

    def test_addresses_are_named_as_torch_names_them(self):
        function = "PyObject_GetAttr"
        address = ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value + 8
        own = stackweave.torch._captured_traceback.of_torch()
        ((_, _, by_torch),) = own.addresses([address], "dladdr")
        for mode in MODES:
            self.assertEqual(profiler.symbolize_addresses([address], mode)[0][2], by_torch)
        self.assertEqual(by_torch, function)

    def test_unknown_addresses(self):
        wrong = [0, 1, (1 << 64) - 1, 1 << 60]
        self.assertEqual(profiler.symbolize_addresses(wrong, "fast"), [("??", 0, "??")] * 4)
        self.assertEqual(profiler.symbolize_addresses((), "fast"), [])
        for mistake in ([-1], [1 << 64], ["a"], [None], [1.5], ["12"], "12", 5):
            with self.assertRaises(TypeError):
                profiler.symbolize_addresses(mistake, "dladdr")
        with self.assertRaisesRegex(RuntimeError, "unexpected mode nope"):
            profiler.symbolize_addresses([1], "nope")
        with self.assertRaises(TypeError):
            profiler.symbolize_addresses([1], None)

    def test_code_without_lines_has_its_library_and_offset(self):
        frames = profiler.symbolize_tracebacks([self.in_autograd(profiler.gather_traceback)])[0]
        found = [frame for frame in frames if "THPFunction_apply" in frame["name"]]
        self.assertTrue(found, frames)
        self.assertTrue(found[0]["filename"].endswith("/torch/lib/libtorch_python.so"), found)
        self.assertGreater(found[0]["line"], 10_000)


class OrderTests(TracebackCase):
    """Frames are in the order in which they have called each other."""

    PYTHON = ("inner", "forward", "f3", "f2", "f1", "in_autograd")

    def test_native_frames_stand_where_they_belong(self):
        frames = profiler.symbolize_tracebacks([self.in_autograd(profiler.gather_traceback)])[0]
        self.assertEqual(self.names_here(frames), [*self.PYTHON, "test_native_frames_stand_where_they_belong"])
        names = [frame["name"] for frame in frames]
        self.assertEqual(names[:2], ["inner", "forward"])
        self.assertIn("_PyEval_EvalFrameDefault", names[2])
        between = names[names.index("forward") : names.index("f3")]
        self.assertTrue([name for name in between if "THPFunction_apply" in name], names)
        evaluating = [name for name in names[2:] if name == "_PyEval_EvalFrameDefault"]
        self.assertGreaterEqual(len(evaluating), 2, names)

    def test_extract_leaves_itself_out(self):
        captured = self.in_autograd(lambda: CapturedTraceback.extract(cpp=True))
        frames = profiler.symbolize_tracebacks([captured.tb])[0]
        self.assertEqual(frames[0]["name"], "<lambda>")
        self.assertEqual(frames[0]["filename"], __file__)
        self.assertEqual(captured.skip, 0)
        self.assertEqual([frame.name for frame in captured.summary()], [frame["name"] for frame in reversed(frames)])
        files = {frame["filename"] for frame in frames}
        self.assertFalse([name for name in files if "stackweave/torch" in name], files)


class ScriptTests(TracebackCase):
    """TorchScript calls Python, which captures a traceback."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        name = "tests.torch_script_program"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            cls.program = importlib.import_module(name)
        cls.addClassCleanup(sys.modules.pop, name)

    def taken(self, *flags):
        taken = []
        self.program.take = lambda: taken.append(profiler.gather_traceback(*flags))
        self.program.run()
        return taken[0], profiler.symbolize_tracebacks(taken)[0]

    def names(self, frames):
        return [frame["name"] for frame in frames if frame["filename"] == self.program.__file__]

    def test_script_frames_alone(self):
        _, frames = self.taken(False, True, False)
        self.assertEqual([frame["name"] for frame in frames], ["inner", "outer"])
        own = stackweave.torch._captured_traceback.of_torch()
        taken = []
        self.program.take = lambda: taken.append(own.gather(False, True, False))
        self.program.run()
        self.assertEqual(frames, own.symbolize(taken)[0])

    def test_script_frames_between_python_frames(self):
        gathered, frames = self.taken(True, True, False)
        self.assertIsInstance(gathered, stackweave.torch.GatheredTraceback)
        self.assertIn("script", {frame.kind for frame in gathered.frames})
        self.assertEqual(gathered.frames, gathered.traceback.frames)
        self.assertEqual(frames[0]["name"], "<lambda>")
        self.assertEqual([frame["name"] for frame in frames[1:5]], ["look", "inner", "outer", "run"])
        self.assertFalse([frame for frame in frames if "jit::" in frame["name"]])
        captured = []
        self.program.take = lambda: captured.append(CapturedTraceback.extract(script=True))
        self.program.run()
        self.assertEqual([frame.name for frame in captured[0].summary()][-4:], ["outer", "inner", "look", "<lambda>"])

    def test_script_frames_stand_inside_of_their_interpreter(self):
        for python in (True, False):
            _, frames = self.taken(python, True, True)
            names = [frame["name"] for frame in frames]
            expected = ["look", "inner", "outer", "run"] if python else ["inner", "outer"]
            self.assertEqual(self.names(frames), expected)
            self.assertIn("torch::jit::InterpreterState", names[names.index("outer") + 1])
            self.assertNotIn("torch::jit::InterpreterState", "".join(names[: names.index("inner")]))

    def test_without_script_there_are_none(self):
        _, frames = self.taken(True, False, True)
        self.assertEqual(self.names(frames), ["look", "run"])

    def test_other_captures_have_none(self):
        taken = []
        self.program.take = lambda: taken.append(stackweave.capture())
        self.program.run()
        self.assertNotIn("script", {frame.kind for frame in taken[0].frames})


class GeneratedCodeTests(TracebackCase):
    """Tracebacks show the lines of the model behind code that Inductor has generated."""

    def test_frames_behind_generated_code_are_shown(self):
        for take in (profiler.gather_traceback, lambda: CapturedTraceback.extract().tb):
            with inductor(**{GENERATED: LINEMAP}):
                traceback = generated(lambda _, take=take: take())
                frames = profiler.symbolize_tracebacks([traceback])[0]
                text = "".join(CapturedTraceback(traceback).format())
            place = [frame["filename"] for frame in frames].index(GENERATED) + 1
            behind = [tuple(frame[key] for key in ("name", "filename", "line")) for frame in frames[place:]]
            self.assertEqual(behind[: len(BEHIND)], BEHIND)
            self.assertIn('File "/model/net.py", line 11, in Net.block\n', text)


class ForwardTests(TracebackCase):
    def captured(self, is_anomalous, take):
        class Taking(torch.autograd.Function):
            @staticmethod
            def forward(context, value):
                return value * 2

            @staticmethod
            def backward(context, gradient):
                found.append(take())
                return gradient * 2

        found = []
        with torch.autograd.set_detect_anomaly(is_anomalous, check_nan=False):
            the_forward_pass = Taking.apply(torch.ones(2, requires_grad=True)).sum()
            the_forward_pass.backward()
        return found[0]

    def test_the_forward_pass_is_kept_under_anomaly_mode(self):
        takes = (
            profiler.gather_traceback,
            CapturedTraceback.extract,
            lambda: CapturedTraceback.extract(cpp=True),
            lambda: CapturedTraceback.extract(script=True),
        )
        for take in takes:
            taken = self.captured(True, take)
            gathered = getattr(taken, "tb", taken)
            forward = stackweave.torch.forward_traceback(taken)
            self.assertIn("the_forward_pass = Taking.apply", "".join(forward))
            self.assertEqual(gathered.forward_traceback, forward)
            self.assertEqual(
                self.names_here(profiler.symbolize_tracebacks([gathered])[0])[-3:-1], ["backward", "captured"]
            )

    def test_without_anomaly_mode_there_is_none(self):
        taken = self.captured(False, profiler.gather_traceback)
        self.assertIsInstance(taken, stackweave.Traceback)
        self.assertIsNone(stackweave.torch.forward_traceback(taken))
        self.assertIsNone(stackweave.torch.forward_traceback(CapturedTraceback.extract()))

    def test_an_exception_on_its_way_is_kept(self):
        """Early stop of checkpointing raises through autograd, while saved tensors are unpacked."""
        from torch.utils.checkpoint import checkpoint

        class Stopped(Exception):
            pass

        def unpack(value):
            try:
                raise Stopped("on its way")
            finally:
                CapturedTraceback.extract(cpp=True).format()
                profiler.gather_traceback()

        def work(value):
            return (value.sin() * value).cos()

        with torch.autograd.set_detect_anomaly(True):
            value = torch.ones(2, requires_grad=True)
            checkpoint(work, value, use_reentrant=False).sum().backward()
            self.assertIsNotNone(value.grad)
            with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept, unpack):
                result = work(torch.ones(2, requires_grad=True)).sum()
            with self.assertRaisesRegex(Stopped, "on its way"):
                result.backward()


if __name__ == "__main__":
    unittest.main()
