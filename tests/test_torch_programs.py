"""Torch prints and logs the same with its own tracebacks and with ours. Skipped where torch is not installed."""

import os
import re
import subprocess
import tempfile
import unittest

from tests.support import PYTHON, ROOT
from tests.torch_dynamo_support import HAS_TORCH

PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
import torch
if sys.argv[1] == "ours":
    import stackweave.torch
    stackweave.torch.install()
import torch._dynamo
from torch._dynamo.utils import counters
from torch.testing._internal.logging_tensor import capture_logs_with_logging_tensor_mode
from torch.utils._traceback import CapturedTraceback

def guarded(value, number):
    value = value.sin()
    if value.shape[0] > 3:
        value = value + number
    torch._dynamo.graph_break()
    return value.cos().sum()

def scalar(value):
    number = value.sum().item()
    torch._check(number > 2)
    return value * number

def capturing(value):
    value = value + 1
    captured.append(CapturedTraceback.extract())
    return value * 2

def failing(value):
    return value.sum().item() > 2 and value

class Module(torch.nn.Module):
    def forward(self, value):
        return torch.relu(value) * value.shape[0]

def main():
    compiled = torch.compile(guarded, dynamic=True, backend="eager")
    for size in (4, 7, 2, 9):
        compiled(torch.ones(size), size)
    torch._dynamo.config.capture_scalar_outputs = True
    torch.compile(scalar, backend="eager", fullgraph=True)(torch.ones(5))
    print("frames", dict(counters["frames"]), "graphs", counters["stats"]["unique_graphs"])
    torch.compile(capturing, backend="eager")(torch.ones(2))
    print("frames", dict(counters["frames"]), "breaks", len(counters["graph_break"]), "captured", captured[-1].format())
    try:
        torch.compile(failing, backend="eager", fullgraph=True)(torch.ones(3))
    except Exception as error:
        print(error)
    shapes = {"value": {0: torch.export.Dim("rows")}}
    exported = torch.export.export(Module(), (torch.ones(4, 3),), dynamic_shapes=shapes)
    for node in exported.graph.nodes:
        print(node.name, node.stack_trace)
    with capture_logs_with_logging_tensor_mode(python_tb=True, script_tb=True) as (logs, tracebacks):
        torch.ones(2) + 1
    print(logs, tracebacks)
    from torch._logging.structured import get_framework_stack, get_user_stack
    print([(frame["name"], frame["line"]) for frame in (*get_user_stack(4), *get_framework_stack(5))])
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    shapes = ShapeEnv()
    print(shapes.var_to_stack[shapes.create_unbacked_symint().node.expr].format())

captured = []
main()
"""
#: Patterns of texts that differ between runs of a program, and their replacements.
CHANGING = (
    (r"^([VIWE])\d{4} [0-9:.]+ \d+ ", r"\1 "),
    (r"0x[0-9a-f]+", "ADDRESS"),
    (r"\d{8,}", "NUMBER"),
    (r"_[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}", "_NAME"),
    (r"\d+(\.\d+)? ?(ms|us|s)\b", "TIME"),
)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class ProgramTests(unittest.TestCase):
    maxDiff = 4000

    def written(self, whose, path):
        done = subprocess.run(
            [PYTHON, "-X", "faulthandler", "-W", "ignore", path, whose],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TORCH_LOGS": "+dynamic,guards,recompiles"},
            timeout=240,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        log = done.stderr
        for changing, word in CHANGING:
            log = re.sub(changing, word, log, flags=re.MULTILINE)
        # Guards on the function that torch does not trace contain its location, which differs.
        log = [line for line in log.splitlines() if "CapturedTraceback" not in line]
        return done.stdout.splitlines(), log

    def test_logs_and_guards_and_graphs_are_the_same(self):
        with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as program:
                program.write(PROGRAM)
            of_torch, their_log = self.written("of_torch", path)
            ours, our_log = self.written("ours", path)
        self.assertEqual(ours, of_torch)
        self.assertEqual(our_log, their_log)
        text = "\n".join(ours + our_log)
        for claim in ("in capturing", "in guarded", "in scalar", "torch.relu(value) * value.shape[0]"):
            self.assertTrue(claim in text, claim)
        self.assertGreater(len(our_log), 100)


if __name__ == "__main__":
    unittest.main()
