"""Shared by the tests of profiles of torch.compile."""

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


def hooked_attributes():
    """Returns the current values of torch's attributes that are hooked, by name."""
    from stackweave.torch._dynamo import hooks

    every = (
        hooks.COMPILE,
        *hooks.ROOT,
        hooks.INLINED,
        *hooks.INLINED_BEFORE,
        *hooks.PHASES,
    )
    return {str(point): vars(point.holder()).get(point.name) for point in every}


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class DynamoCase(RecordingCase):
    """Starts without compiled functions, and asserts that torch is unchanged at the end."""

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
        before = hooked_attributes()
        self.addCleanup(self.assert_same_attributes, before)

    def assert_same_attributes(self, before):
        for name, value in hooked_attributes().items():
            self.assertIs(value, before[name], name)

    def profiled(self, function, *args, backend="eager", **options):
        """Returns the result of a compiled function, and the profile of its first call."""
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
    """Returns the rows of the traced functions, by file and line."""
    return {
        (row.filename, row.lineno): row
        for row in profile.recording.phases()
        if row.filename and not row.name.startswith("compile ")
    }


def row_of(profile, function):
    code = getattr(function, "__code__", function)
    return rows_of(profile)[code.co_filename, code.co_firstlineno]


def named(profile, name):
    """Returns the row of a phase."""
    rows = [row for row in profile.recording.phases() if row.name == name]
    assert len(rows) == 1, (name, rows)
    return rows[0]


def torch_version():
    return tuple(map(int, sys.modules["torch"].__version__.split(".")[:2]))
