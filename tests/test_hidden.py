"""What is shown says what is hidden inside libraries and the interpreter, and how to show it."""

import os
import subprocess
import tempfile
import textwrap
import unittest

import stackweave
from tests.support import PYTHON, run_on_oldest_and_newest

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
        self.assertGreaterEqual(tree.hidden.functions, len({location(node) for node in hidden} - self.functions(tree)))

    def functions(self, node):
        return {location(child) for child in node.children}.union(*map(self.functions, node.children))

    def test_each_view_has_it(self):
        hidden = self.recording.tree().hidden
        for shown in (self.recording.top(2), self.recording.phases(), self.recording.tree().children[0]):
            with self.subTest(shown=type(shown).__name__):
                self.assertEqual((shown.hidden.functions, shown.hidden.self), (hidden.functions, hidden.self))
        self.assertEqual((len(self.recording.top(2)), self.recording.top(2)), (2, list(self.recording.top(2))))
        everything = self.recording.top(all=True).hidden
        self.assertEqual((everything.functions, everything.self, everything.costly, str(everything)), (0, 0, 0, ""))

    def test_the_text_of_phases_has_a_sentence(self):
        # Of a share below 1 % there is none.
        sentence = str(self.recording.phases().hidden)
        self.assertEqual(f"({sentence})" in self.recording.phases_text().splitlines(), bool(sentence))
        self.assertNotIn("are hidden", self.recording.phases_text(all=True))


class HiddenMemory(unittest.TestCase):
    def test_the_text_of_a_tree_has_a_sentence(self):
        # Memory is always allocated inside the interpreter and libraries.
        with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
            with stackweave.memory(os.path.join(folder, "memory.swv")) as recorder:
                blocks = [bytes(100_000) for _ in range(50)]
            tree, everything = (recorder.recording.tree(measure="bytes", all=which) for which in (False, True))
            self.assertGreater(tree.hidden.self, sum(map(len, blocks)))
            self.assertEqual((tree.hidden.costly, tree.total), (0, everything.total))
            sentence = str(tree.hidden)
            self.assertRegex(sentence, r"^\d+ functions inside libraries .* are hidden: .*; all=True shows them$")
            self.assertEqual(str(tree).splitlines()[-1], f"({sentence})")
            self.assertNotIn("are hidden", str(everything))


class OwnPackage(unittest.TestCase):
    def test_a_program_in_a_folder_of_the_packages_name_is_shown(self):
        with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
            program = os.path.join(folder, "python", "stackweave")
            os.makedirs(program)
            with open(os.path.join(program, "train.py"), "w") as file:
                file.write("from _helper import help\n\n\ndef main():\n    help()\n\n\nmain()\n")
            with open(os.path.join(program, "_helper.py"), "w") as file:
                file.write("def help():\n    return sum(range(10))\n")
            for name in ("trace", "memory"):
                path = os.path.join(folder, f"{name}.swv")
                command = [PYTHON, "-m", "stackweave", name, "-o", path, os.path.join(program, "train.py")]
                subprocess.run(command, check=True, capture_output=True)
            names = {cost.name for cost in stackweave.open(os.path.join(folder, "trace.swv")).top()}
            self.assertLessEqual({"<module>", "main", "help"}, names)
            blocks = stackweave.open(os.path.join(folder, "memory.swv")).top(measure="bytes")
            self.assertIn("<module>", {cost.name for cost in blocks if cost.filename.endswith("train.py")})


if __name__ == "__main__":
    unittest.main()
