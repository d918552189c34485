"""Our functions capture the same frames as torch's own. Skipped where torch is not installed."""

import unittest

import stackweave.torch
from tests.torch_call_shapes import SHAPES
from tests.torch_dynamo_support import HAS_TORCH
from tests.torch_install_support import InstallCase

if HAS_TORCH:
    import torch
    from torch._C import _profiler as profiler
    from torch.utils._traceback import CapturedTraceback


class FrameTests(InstallCase):
    """Compares frame by frame."""

    def taken_twice(self, shape, take):
        """Returns the results of a shape without and with our functions, from the same line."""
        taken = []
        for is_ours in (False, True):
            (stackweave.torch.install if is_ours else stackweave.torch.uninstall)()
            taken.append(shape(take))
        stackweave.torch.uninstall()
        return taken

    def test_extract_gives_what_torch_gives(self):
        for shape in SHAPES:
            for skip in (0, 1, 2, 1000):
                with self.subTest(shape=shape.__name__, skip=skip):
                    of_torch, ours = self.taken_twice(shape, lambda skip=skip: CapturedTraceback.extract(skip=skip))
                    self.assertNotEqual(type(of_torch.tb), type(ours.tb))
                    self.assertEqual(ours.skip, of_torch.skip)
                    self.assertEqual(ours.summary(), of_torch.summary())
                    self.assertEqual(ours.format(), of_torch.format())
                    self.assertEqual(CapturedTraceback.format_all([ours, of_torch]), [of_torch.format()] * 2)
                    self.assertEqual(len(of_torch.format()) == 0, skip == 1000)

    def test_gather_gives_what_torch_gives(self):
        for shape in SHAPES:
            for script in (False, True):
                with self.subTest(shape=shape.__name__, script=script):
                    take = lambda script=script: profiler.gather_traceback(True, script, False)  # noqa: E731
                    of_torch, ours = self.taken_twice(shape, take)
                    self.assertNotEqual(type(of_torch), type(ours))
                    of_torch, ours = profiler.symbolize_tracebacks([of_torch, ours])
                    self.assertEqual(ours, of_torch)
                    self.assertEqual(list(ours[0]), list(of_torch[0]))

    def test_a_summary_is_what_torch_gives(self):
        of_torch, ours = self.taken_twice(SHAPES[0], lambda: CapturedTraceback.extract().summary())
        self.assertIs(type(ours), type(of_torch))
        self.assertEqual([type(frame) for frame in ours], [type(frame) for frame in of_torch])
        self.assertEqual([frame.line for frame in ours], [frame.line for frame in of_torch])

    def test_python_frames_are_the_same_with_native_frames(self):
        def take():
            return [profiler.gather_traceback(True, False, cpp) for cpp in (True, False)]

        for shape in SHAPES:
            with self.subTest(shape=shape.__name__):
                with stackweave.torch.installed():
                    taken = shape(take)
                woven, python = profiler.symbolize_tracebacks(taken)
                files = {frame["filename"] for frame in python}
                self.assertEqual([frame for frame in woven if frame["filename"] in files], python)
                self.assertGreater(len(woven), len(python))

    def test_inside_of_torch(self):
        def forward(take):
            class Taking(torch.autograd.Function):
                @staticmethod
                def forward(context, value):
                    found.append(take())
                    return value

            found = []
            Taking.apply(torch.ones(2, requires_grad=True))
            return found[0]

        of_torch, ours = self.taken_twice(forward, CapturedTraceback.extract)
        self.assertEqual(ours.format(), of_torch.format())

    def test_where_dynamo_evaluates_frames(self):
        """There, each Python function has its own native frames, and some belong to Stackweave."""

        def under_dynamo(take):
            def program(value):
                torch._dynamo.graph_break()
                found.append(take())
                return value + 1

            found = []
            torch.compile(program, backend="eager")(torch.ones(2))
            torch._dynamo.reset()
            return found[0]

        import torch._dynamo

        of_torch, ours = self.taken_twice(under_dynamo, CapturedTraceback.extract)
        self.assertEqual(ours.format(), of_torch.format())
        takes = (
            lambda: profiler.gather_traceback(),
            lambda: CapturedTraceback.extract(cpp=True).tb,
            lambda: profiler.gather_traceback(True, True, False),
        )
        for take in takes:
            of_torch, ours = self.taken_twice(under_dynamo, take)
            (frames,) = profiler.symbolize_tracebacks([ours])
            files = [frame["filename"] for frame in frames]
            self.assertEqual([name for name in files if "/stackweave/" in name], [])
            python = [frame["name"] for frame in frames if frame["filename"] == __file__]
            self.assertRegex(python.pop(1), "^torch_dynamo_resume_in_program_at_")
            self.assertEqual(python[:4], ["<lambda>", "program", "under_dynamo", "taken_twice"])


if __name__ == "__main__":
    unittest.main()
