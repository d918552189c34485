"""Stacks show the lines of a model behind Inductor's generated code. Tests that need torch are skipped without it."""

import contextlib
import importlib.util
import os
import sys
import types
import unittest
from unittest import mock

import stackweave
import stackweave.torch
from stackweave.torch._inductor_frames import frames_behind
from tests.recordings import RecordingCase
from tests.support import run_python

HAS_TORCH = importlib.util.find_spec("torch") is not None
CODECACHE = "torch._inductor.codecache"

GENERATED = "/cache/ab/cab.py"
SOURCE = """
def call(look):
    first = 1
    return look(first)
"""
FORWARD = """  File "/model/net.py", line 13, in forward
    y = self.block(x * 2)
        ^^^^^^^^^^^^^^^^^
  File "/model/net.py", line 11, in Net.block
    log('File "no.py", line 1, in no one') or look(x.sin()) + 1
                                              ^^^^^^^^^^^^^
"""
LINEMAP = [(3, 4, 9), (None, FORWARD, '  File "/model/last.py", line 2, in last')]
BEHIND = [("Net.block", "/model/net.py", 11), ("forward", "/model/net.py", 13)]


@contextlib.contextmanager
def inductor(**linemaps):
    """Replaces the module of Inductor by one with these line maps."""
    module = types.ModuleType(CODECACHE)
    module.PyCodeCache = type("PyCodeCache", (), {"linemaps": dict(linemaps)})
    with mock.patch.dict(sys.modules, {CODECACHE: module}):
        yield module.PyCodeCache.linemaps


def generated(look):
    """Calls a function from the line of a generated file that corresponds to a line of the model."""
    namespace = {}
    exec(compile(SOURCE, GENERATED, "exec"), namespace)
    return namespace["call"](look)


def behind(stack):
    """Returns the extra frames behind the generated code, innermost first."""
    frames = [frame for frame in stack if frame.kind != "native"]
    place = [frame.name for frame in frames].index("call") + 1
    found = extra(frames[place:])
    assert found == extra(frames[place : place + len(found)]), frames
    return found


def extra(stack):
    return [(frame.name, frame.filename, frame.lineno) for frame in stack if frame.kind == "extra"]


class Linemaps(unittest.TestCase):
    def test_a_line_has_the_frames_of_the_last_entry_before_it(self):
        with inductor(**{GENERATED: LINEMAP}):
            self.assertEqual([frames_behind(GENERATED, line) for line in (1, 2, 3)], [None] * 3)
            self.assertEqual([frames_behind(GENERATED, line) for line in range(4, 9)], [BEHIND] * 5)
            self.assertEqual(frames_behind(GENERATED, 9), [("last", "/model/last.py", 2)])
            self.assertEqual(frames_behind(GENERATED, 1_000), [("last", "/model/last.py", 2)])
            self.assertIsNone(frames_behind("/cache/ab/other.py", 4))

    def test_files_without_lines_have_nothing_behind_them(self):
        for empty in ([], [(1,), (None,)], [(1,), ("",)], [(1,), ("no frame at all",)]):
            with self.subTest(empty), inductor(**{GENERATED: empty}):
                self.assertIsNone(frames_behind(GENERATED, 1))

    def test_a_file_may_be_known_later(self):
        with inductor() as linemaps:
            self.assertIsNone(frames_behind(GENERATED, 4))
            linemaps[GENERATED] = LINEMAP
            self.assertEqual(frames_behind(GENERATED, 4), BEHIND)

    def test_inductor_may_be_missing_or_different(self):
        with mock.patch.dict(sys.modules):
            sys.modules.pop(CODECACHE, None)
            self.assertIsNone(frames_behind(GENERATED, 4))
        with mock.patch.dict(sys.modules, {CODECACHE: types.ModuleType(CODECACHE)}):
            self.assertIsNone(frames_behind(GENERATED, 4))
        with mock.patch.dict(sys.modules, {CODECACHE: None}):
            self.assertIsNone(frames_behind(GENERATED, 4))

    def test_nothing_is_imported(self):
        script = """
import sys
import stackweave
assert not [name for name in sys.modules if name.startswith("stackweave.torch")]
import stackweave.torch
stackweave.capture().frames
before = set(sys.modules)
namespace = {}
exec(compile("def call(look):\\n    return look()", "/cache/ab/cab.py", "exec"), namespace)
namespace["call"](stackweave.capture).frames
print(sorted(set(sys.modules) - before), sorted(name for name in sys.modules if name.split(".")[0] == "torch"))
"""
        self.assertEqual(run_python(script), "[] []\n")


class Stacks(RecordingCase):
    def setUp(self):
        super().setUp()
        imported = contextlib.ExitStack()
        self.addCleanup(imported.close)
        self.linemaps = imported.enter_context(inductor(**{GENERATED: LINEMAP}))

    def test_captured_stacks_have_them(self):
        captured = generated(lambda _: stackweave.capture())
        self.assertEqual(behind(captured.frames), BEHIND)
        self.assertIn('  File "/model/net.py", line 11, in Net.block\n', str(captured))

    def test_a_stack_is_resolved_with_what_is_known_then(self):
        captured = generated(lambda _: stackweave.capture())
        lines = self.linemaps.pop(GENERATED)
        self.assertNotIn("extra", {frame["kind"] for frame in stackweave.symbolize([captured])[0]})
        self.linemaps[GENERATED] = lines
        self.assertEqual(behind(captured.frames), BEHIND)

    def test_recorded_events_have_them_after_inductor_is_gone(self):
        with self.recording() as recording:
            generated(lambda _: recording.instant("look", stack=True))
        self.linemaps.clear()
        (event,) = [event for event in stackweave.open(self.path).events() if event.name == "look"]
        self.assertEqual(behind(event.stack), BEHIND)

    def test_traces_have_them(self):
        with stackweave.trace(self.path) as trace:
            generated(lambda _: trace.instant("look", stack=True))
        self.linemaps.clear()
        (event,) = [event for event in trace.recording.events() if event.name == "look"]
        self.assertEqual(behind(event.stack), BEHIND)
        self.assertIn("call", [event.name for event in trace.recording.events() if event.role == "begin"])

    def test_memory_is_charged_to_the_lines_of_the_model(self):
        with stackweave.memory(self.path) as memory:
            block = generated(lambda _: bytearray(50_000_000))
        self.linemaps.clear()
        (row,) = [row for row in memory.recording.peak() if row.bytes >= len(block)]
        self.assertEqual(behind(row.stack), BEHIND)


MODEL = """
import sys

import torch

import stackweave
import stackweave.torch

seen = []


@torch.library.custom_op("stackweave_tests::look", mutates_args=())
def look(x: torch.Tensor) -> torch.Tensor:
    seen.append(stackweave.capture())
    return x.clone()


@look.register_fake
def _(x):
    return torch.empty_like(x)


class Net(torch.nn.Module):
    def block(self, x):
        return look(x)

    def forward(self, x):
        y = self.block(x)
        return y.t()


net = torch.compile(Net(), backend="inductor")
x = torch.rand(1_000, 1_000)
for got in (net(x), net(x)):
    assert torch.equal(got, x.t())
"""


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Inductor(RecordingCase):
    """Runs code that Inductor really generates, in a separate process and cache. No kernel needs a compiler."""

    def setUp(self):
        super().setUp()
        self.model = os.path.join(self.folder, "net.py")
        with open(self.model, "w") as file:
            file.write(MODEL)
        lines = MODEL.splitlines()
        self.expected = [
            ("block", lines.index("        return look(x)") + 1),
            ("forward", lines.index("        y = self.block(x)") + 1),
        ]

    def test_generated_code_leads_back_to_the_model(self):
        script = f"""
import sys
sys.path.insert(0, {self.folder!r})
from net import *

for captured in seen:
    frames = [frame for frame in captured.frames if frame.kind != "native"]
    place = [frame.kind for frame in frames].index("extra")
    print(frames[place - 1].kind, frames[place - 1].name, frames[place - 1].filename.startswith(sys.path[0]))
    extra = [frame for frame in frames if frame.kind == "extra" and frame.filename == {self.model!r}]
    print([(frame.name, frame.lineno) for frame in extra])
with stackweave.memory(sys.argv[1]):
    net(x)
"""
        # One thread: each process of a pool of compilers would import torch.
        environment = {"TORCHINDUCTOR_CACHE_DIR": self.folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        printed = self.run_script(script, stderr=".*", **environment)
        self.assertEqual(printed.splitlines(), ["python call True", str(self.expected)] * 2)
        rows = [row for row in stackweave.open(self.path).memory().peak() if row.bytes >= 4_000_000]
        self.assertIn(self.expected, [self.of_the_model(row.stack) for row in rows])

    def of_the_model(self, stack):
        """Returns the frames of the model. Older versions of torch add frames of their own."""
        return [(name, line) for name, filename, line in extra(stack) if filename == self.model]
