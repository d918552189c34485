"""Each public name has a docstring, and the examples in it run and print what they say."""

import doctest
import os
import shutil
import tempfile
import types
import unittest

import stackweave
import stackweave.torch
import stackweave.torch.dynamo
from tests.support import run_on_newest

setUpModule = run_on_newest

MODULES = (stackweave, stackweave.torch, stackweave.torch.dynamo)
#: Of an exception only the type is compared: its message may have an address or an error number.
FLAGS = doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE
#: They have the docstrings of the classes of torch that they replace, without examples.
WITHOUT_EXAMPLES = ("DynamoProfilerState", "FunctionTraceTiming", "ProfilerStackEntry")


def main():
    """Is the program in the examples."""
    sum(range(100))


def public_names():
    """Yields each public object once, with its full name."""
    seen = set()
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if id(value) not in seen and not isinstance(value, (str, types.ModuleType)):
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value


class Docstrings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stackweave-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())

    def test_each_public_name_has_a_docstring_with_an_example(self):
        for name, value in public_names():
            with self.subTest(name):
                self.assertTrue(value.__doc__)
                if name.rpartition(".")[2] not in WITHOUT_EXAMPLES:
                    self.assertIn(">>> ", value.__doc__)

    def test_the_examples_print_what_they_say(self):
        parser = doctest.DocTestParser()
        for name, value in public_names():
            with self.subTest(name):
                os.chdir(tempfile.mkdtemp(dir=self.folder))
                names = {"__name__": "__main__", "stackweave": stackweave, "main": main}
                example = parser.get_doctest(value.__doc__ or "", names, name, None, None)
                report = []
                result = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=report.append)
                self.assertEqual(result.failed, 0, "".join(report))
