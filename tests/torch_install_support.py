"""Shared by the tests of Stackweave installed in torch."""

import types
import unittest

import stackweave.torch
from tests.torch_dynamo_support import HAS_TORCH

#: Torch's functions that uninstall() restores. symbolize_tracebacks stays ours.
NAMES = ("gather_traceback", "symbolize_addresses")


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class InstallCase(unittest.TestCase):
    """Starts and ends with torch's own functions."""

    @classmethod
    def setUpClass(cls):
        from torch._C import _profiler
        from torch.utils._traceback import CapturedTraceback

        cls.profiler, cls.CapturedTraceback = _profiler, CapturedTraceback
        with stackweave.torch.installed():
            pass
        #: Torch's own functions. They are in a dict, as install() replaces functions in the namespaces of modules.
        own = stackweave.torch._captured_traceback.of_torch()
        cls.own = {"gather_traceback": own.gather, "symbolize_tracebacks": own.symbolize}
        cls.own["dispatcher"] = stackweave.torch._captured_traceback.symbolize_tracebacks

    def setUp(self):
        self.assertFalse(stackweave.torch.is_installed())
        self.addCleanup(lambda: self.assertFalse(stackweave.torch.is_installed()))
        self.addCleanup(stackweave.torch.uninstall)

    def is_ours(self):
        """Returns whether torch's functions are replaced by ours. Asserts that all are, or none."""
        ours = {isinstance(getattr(self.profiler, name), types.FunctionType) for name in NAMES}
        ours.add(self.CapturedTraceback.extract.__module__ == "stackweave.torch._captured_traceback")
        self.assertEqual(len(ours), 1, ours)
        self.assertEqual(ours, {stackweave.torch.is_installed()})
        return ours.pop()
