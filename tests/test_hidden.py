"""What is shown says what is hidden inside libraries and the interpreter, and how to show it."""

import os
import tempfile
import textwrap
import unittest

import stackweave
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

LIBRARY = os.path.dirname(os.path.abspath(textwrap.__file__))


def main():
    return [textwrap.fill("some words to wrap " * number, 30) for number in range(1, 80)]


def is_library(node):
    return bool(node.filename) and os.path.abspath(node.filename).startswith(LIBRARY)


def inner_nodes(node, around=False):
    """Yields the nodes of a tree whose caller is in the library, too."""
    for child in node.children:
        if is_library(child) and around:
            yield child
        yield from inner_nodes(child, is_library(child))


def location(node):
    return node.name, node.filename, node.lineno


class Hidden(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stackweave-")
        self.addCleanup(folder.cleanup)
        main()
        with stackweave.trace(os.path.join(folder.name, "calls.swv"), gc=False) as recorder:
            main()
        self.recording = recorder.recording

    def test_the_hidden_cost_is_that_of_everything_shown(self):
        everything, tree = self.recording.tree(all=True), self.recording.tree()
        costly = {location(node) for node in inner_nodes(tree)}
        hidden = [node for node in inner_nodes(everything) if location(node) not in costly]
        self.assertGreater(len(hidden), 3)
        cost = sum(node.self for node in hidden)
        self.assertGreater(cost, 0)
        self.assertAlmostEqual(tree.hidden.self, cost, places=8)
        self.assertAlmostEqual(tree.hidden.share, cost / everything.total, places=6)
        self.assertEqual((tree.hidden.costly, everything.total), (len(costly), tree.total))
        seen = {location(node) for node in self.nodes(tree)}
        self.assertEqual(tree.hidden.functions, len({location(node) for node in hidden} - seen))

    def nodes(self, node):
        for child in node.children:
            yield child
            yield from self.nodes(child)

    def test_each_view_has_it(self):
        hidden = self.recording.tree().hidden
        for shown in (self.recording.top(2), self.recording.phases(), self.recording.tree().children[0]):
            with self.subTest(shown=type(shown).__name__):
                self.assertEqual((shown.hidden.functions, shown.hidden.self), (hidden.functions, hidden.self))
        self.assertEqual((len(self.recording.top(2)), self.recording.top(2)), (2, list(self.recording.top(2))))
        everything = self.recording.top(all=True).hidden
        self.assertEqual((everything.functions, everything.self, everything.costly, str(everything)), (0, 0, 0, ""))

    def test_texts_have_a_sentence(self):
        sentence = str(self.recording.tree().hidden)
        self.assertRegex(sentence, r"^\d+ functions inside libraries and the interpreter are hidden.*; all=True shows them$")
        for text in (str(self.recording.tree()), self.recording.phases_text()):
            self.assertEqual(text.splitlines()[-1], f"({sentence})")
        self.assertNotIn("are hidden", self.recording.phases_text(all=True) + str(self.recording.tree(all=True)))


if __name__ == "__main__":
    unittest.main()
