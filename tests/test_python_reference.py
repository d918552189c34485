"""The page about the Python interface names every public object, with its parameters."""

import inspect
import re
import unittest

import stackweave
from tests.document_pages import Page
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

PAGE = Page("docs/reference/python.md")


class PythonReference(unittest.TestCase):
    def test_signatures_are_those_of_the_package(self):
        lines = [line for block in re.findall(r"```pyi\n(.*?)```", PAGE.text, re.DOTALL) for line in block.splitlines()]
        self.assertGreater(len(lines), 15)
        for line in lines:
            with self.subTest(line=line):
                name, parameters = re.fullmatch(r"([\w.]+)(\(.*?\))(?: -> [\w\[\], ]+)?", line).groups()
                self.assertEqual(parameters, parameters_of(name))

    def test_every_public_name_is_there(self):
        for name in stackweave.__all__:
            with self.subTest(name=name):
                self.assertRegex(PAGE.text, rf"[`.]{name}\b|(?m:^{name}\()")


def parameters_of(name):
    """Returns the parameters without types, and without the object of a method."""
    function = stackweave
    for part in name.split("."):
        function = getattr(function, part)
    signature = inspect.signature(function)
    named = [each for each in signature.parameters.values() if each.name != "self"]
    plain = [each.replace(annotation=each.empty) for each in named]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))
