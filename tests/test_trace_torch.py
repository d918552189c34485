"""A trace names modules and optimizers of torch. Skipped where torch is not installed."""

import gc
import importlib.util
import unittest

import stackweave
from stackweave._recorders import torch_calls
from tests.recordings import RecordingCase

HAS_TORCH = importlib.util.find_spec("torch") is not None


class Ordinals(unittest.TestCase):
    def test_instances_are_numbered_by_identity_as_long_as_they_live(self):
        class Equal:
            def __eq__(self, other):
                return True

            __hash__ = None

        class Other:
            pass

        ordinals = torch_calls.Ordinals()
        kept = [Equal() for _ in range(3)]
        self.assertEqual([ordinals.of(each, "Equal") for each in kept], [(0, True), (1, True), (2, True)])
        self.assertEqual([ordinals.of(each, "Equal") for each in kept], [(0, False), (1, False), (2, False)])
        self.assertEqual(ordinals.of(Other(), "Other"), (0, True))
        seen = set()
        for expected in range(3, 50):
            fresh = Equal()
            self.assertEqual(ordinals.of(fresh, "Equal"), (expected, True))
            seen.add(id(fresh))
        self.assertLess(len(seen), 47, "no address was used again")
        del fresh
        gc.collect()
        self.assertEqual(len(ordinals._seen), 3)

    def test_other_functions_of_the_same_name_are_none_of_torchs(self):
        class Module:
            def _wrapped_call_impl(self):
                pass

        calls = torch_calls.TorchCalls()
        self.assertIsNone(calls.describe(Module._wrapped_call_impl.__code__, {"self": Module()}))


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Torch(RecordingCase):
    def model(self):
        import torch

        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def train(self, model, optimizer, steps=2):
        import torch

        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()

    def begun(self, trace, start):
        return [
            (e.name, e.details or None)
            for e in trace.events()
            if e.role == "begin" and (e.name or "").startswith(start)
        ]

    def test_modules_are_numbered_and_described_once(self):
        import torch

        model = self.model()
        with stackweave.trace(self.path) as trace:
            model(torch.ones(3, 4))
            model(torch.ones(3, 4))
        begun = self.begun(trace, "nn.Module: ")
        names = ["Sequential_0", "Linear_0", "ReLU_0", "Linear_1"] * 2
        self.assertEqual([name for name, _ in begun], [f"nn.Module: {name}" for name in names])
        self.assertEqual(
            begun[1][1],
            {
                "class": "torch.nn.modules.linear.Linear",
                "parameters": [
                    {"name": "weight", "shape": [8, 4], "dtype": "torch.float32", "device": "cpu", "strides": [4, 1]},
                    {"name": "bias", "shape": [8], "dtype": "torch.float32", "device": "cpu", "strides": [1]},
                ],
            },
        )
        self.assertEqual([details for _, details in begun[4:]], [None] * 4)

    def test_steps_of_optimizers_are_spans(self):
        import torch

        model = self.model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        with stackweave.trace(self.path) as trace:
            self.train(model, optimizer)
        (first, details), (second, nothing) = self.begun(trace, "Optimizer.step#")
        self.assertEqual((first, second, nothing), ("Optimizer.step#Adam.step",) * 2 + (None,))
        (group,) = details["param_groups"]
        self.assertEqual((group["lr"], group["betas"], len(group["params"])), (0.01, [0.9, 0.999], 4))
        self.assertEqual(group["params"][0]["shape"], [8, 4])

    def test_they_are_called_as_ever_without(self):
        import torch

        with stackweave.trace(self.path, torch=False) as trace:
            self.model()(torch.ones(3, 4))
        names = [event.name for event in trace.events() if event.role == "begin"]
        self.assertFalse([name for name in names if name and name.startswith("nn.Module")])
        self.assertTrue([name for name in names if name and name.endswith("_wrapped_call_impl")])

    def test_torch_may_be_imported_later(self):
        script = """
import stackweave, sys
# Before 3.11 code does not know its class.
chosen = ["function:Module.*", "function:_wrapped_call_impl", "function:main"]
trace = stackweave.trace(sys.argv[1], include=chosen).start()
def main():
    import torch
    torch.nn.Identity()(1)
main()
trace.stop()
"""
        self.run_script(script, stderr=".*")
        names = [event.name for event in stackweave.open(self.path).events() if event.role == "begin"]
        self.assertIn("nn.Module: Identity_0", names)
