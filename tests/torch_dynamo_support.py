"""What the tests of profiles of torch.compile share."""

import importlib.util
import shutil
import sys
import unittest
import warnings

from stackweave.torch import dynamo
from tests.recordings import RecordingCase

HAS_TORCH = importlib.util.find_spec("torch") is not None
#: Inductor writes C++ for a CPU.
HAS_COMPILER = any(map(shutil.which, ("g++", "clang++")))


def places():
    """What torch has in the places that are hooked, by name: as it lies there."""
    from stackweave.torch._dynamo import hooks

    every = (
        hooks.COMPILE,
        *hooks.ROOT,
        hooks.INLINED,
        *hooks.INLINED_BEFORE,
        *hooks.PHASES,
    )
    return {str(place): vars(place.holder()).get(place.name) for place in every}


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class DynamoCase(RecordingCase):
    """Starts with nothing compiled, and leaves torch as it was."""

    @classmethod
    def setUpClass(cls):
        warnings.filterwarnings("ignore", message=".*NumPy.*")
        global torch, corpus
        import torch
        import torch._dynamo

        from tests import dynamo_corpus as corpus

        cls.corpus = corpus
        cls.torch = torch

    def setUp(self):
        super().setUp()
        self.torch.compiler.reset()
        before = places()
        self.addCleanup(self.assert_same_places, before)

    def assert_same_places(self, before):
        for name, value in places().items():
            self.assertIs(value, before[name], name)

    def profiled(self, function, *args, backend="eager", **options):
        """What a compiled function gives, and the profile of its first call."""
        with dynamo.profile(**options) as profile:
            result = self.torch.compile(function, backend=backend)(*args)
        self.assert_clean(profile)
        return result, profile

    def assert_clean(self, profile):
        self.assertEqual(profile.hook_errors(), [])
        self.assertEqual(tuple(profile.problems()), (0, 0, 0, 0))

    def assert_same(self, result, expected):
        self.assertTrue(self.torch.allclose(result, expected), (result, expected))


def rows_of(profile):
    """The functions that were traced, by file and line: as the profile's rows."""
    return {
        (row.filename, row.lineno): row
        for row in profile.recording.phases()
        if row.filename and not row.name.startswith("compile ")
    }


def row_of(profile, function):
    code = getattr(function, "__code__", function)
    return rows_of(profile)[code.co_filename, code.co_firstlineno]


def named(profile, name):
    """The row of a phase."""
    rows = [row for row in profile.recording.phases() if row.name == name]
    assert len(rows) == 1, (name, rows)
    return rows[0]


def torch_version():
    return tuple(map(int, sys.modules["torch"].__version__.split(".")[:2]))
