"""Pages are read and compared by the rules in README.md of this folder."""

import unittest

from tests.document_pages import Page, PageError
from tests.document_shape import difference, shape
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest


class Shapes(unittest.TestCase):
    def test_figures_units_and_folders_have_no_shape(self):
        for one, other in [
            ("peak 812 MiB after 1.92 s", "peak 9.5 KiB after 210 us"),
            ("  7.64 MiB   71.9%      8,000  table  app.py:5", "1.00 KiB 9% 12 table /some/folder/app.py:77"),
            ("recorded in train.4242.swv (5.63 MiB)", "recorded in train.77.swv (12 KiB)"),
            ("at 0x7f00aa", "at 0x12"),
            ("███▌ 12", "█ 3"),
        ]:
            with self.subTest(one=one):
                self.assertEqual(shape(one), shape(other))

    def test_words_names_and_their_order_are_the_shape(self):
        for one, other in [
            ("load app.py:5", "store app.py:5"),
            ("load app.py:5", "load other.py:5"),
            ("3 calls", "3 blocks"),
            ("├─ step", "└─ step"),
            ("step 3", "3 step"),
        ]:
            with self.subTest(one=one):
                self.assertNotEqual(shape(one), shape(other))

    def test_lines_are_compared_in_order(self):
        self.assertIsNone(difference("a 1\nb 2\n", "a 7\n\nb 8\n"))
        for expected in ["a\n", "b\na\n", "a\nb\nc\n", "b\n", "a\nc\n"]:
            with self.subTest(expected=expected):
                self.assertIsNotNone(difference(expected, "a\nb\n"))

    def test_a_gap_stands_for_any_lines_and_the_rest_of_one(self):
        for expected in ["...\nc\n", "a\n...\n", "a\n...\nb\nc\n", "a\nb …\nc\n", "...\n"]:
            with self.subTest(expected=expected):
                self.assertIsNone(difference(expected, "a\nb is long\nc\n" if "…" in expected else "a\nb\nc\n"))
        self.assertIsNotNone(difference("a\n...\nd\n", "a\nb\nc\n"))
        self.assertIsNotNone(difference("...\nc\nb\n", "a\nb\nc\n"))

    def test_figures_are_compared_where_a_page_says_so(self):
        self.assertIsNone(difference("a 1\n...\n", "a 1\nb 2\n", exact=True))
        self.assertIsNotNone(difference("a 1\n", "a 2\n", exact=True))

    def test_rows_may_be_in_any_order_where_a_page_says_so(self):
        self.assertIsNone(difference("b\na\n", "a\nb\n", any_order=True))
        self.assertIsNone(difference("2 deep: b 1, a 2\n", "3 deep: a 7, b 4\n", any_order=True))
        self.assertIsNotNone(difference("2 deep: b 1, a 2\n", "3 deep: a 7, c 4\n", any_order=True))
        self.assertIsNotNone(difference("b\na\n", "a\nb\nc\n", any_order=True))
        self.assertIsNotNone(difference("b\nb\n", "a\nb\n", any_order=True))


class Rules(unittest.TestCase):
    def test_blocks_are_steps_in_order_with_what_they_print(self):
        page = Page(
            "page.md",
            "# Page\n\n<!-- file: a.py\nprint(1)\n-->\n\n```sh\npython a.py   # runs it\nls\n```\n\n```text\n1\n```\n\n"
            "```python\nprint(2)\n```\n\nWords.\n\n```text\nnot of it\n```\n",
        )
        kinds = [(step.kind, step.name, step.expected) for step in page.steps]
        self.assertEqual(kinds, [("file", "a.py", None), ("sh", "", "1\n"), ("python", "", None)])
        self.assertEqual(page.steps[0].body, "print(1)\n")
        self.assertEqual(page.steps[1].commands(), [("python a.py   # runs it", None)])

    def test_a_console_shows_commands_and_what_they_print(self):
        page = Page("page.md", "```console\n$ stackweave info \\\n  a.swv\nfine\n$ ls\na.swv\n$ python b.py\n```\n")
        self.assertEqual(page.steps[0].commands(), [("stackweave info   a.swv", "fine\n"), ("python b.py", None)])

    def test_marks_hold_for_the_block_behind_them(self):
        page = Page(
            "page.md",
            "# Page\n\n<!-- not run: it would wait forever -->\n```sh\nstackweave live\n```\n\n"
            "<!-- needs: numpy, torch -->\n<!-- status: 3 -->\n```sh\npython x.py\n```\n\n"
            "<!-- file: b.py -->\n```python\nb\n```\n",
        )
        self.assertEqual(page.not_run, [(4, "it would wait forever")])
        self.assertEqual(
            [(step.kind, step.needs, step.status) for step in page.steps[:1]], [("sh", ["numpy", "torch"], 3)]
        )
        self.assertEqual((page.steps[1].kind, page.steps[1].name, page.needs), ("file", "b.py", []))

    def test_a_page_may_need_a_package(self):
        self.assertEqual(Page("page.md", "<!-- needs: torch -->\n# Page\n\n```python\n1\n```\n").needs, ["torch"])

    def test_native_blocks_have_what_was_declared_before_them(self):
        page = Page("page.md", "```c\na();\n```\n\n<!-- c\nint x;\n-->\n```c\nb(x);\n```\n```cpp\nc();\n```\n")
        self.assertEqual(
            page.native, [("c", 1, "", "a();\n"), ("c", 8, "int x;\n", "b(x);\n"), ("cpp", 11, "", "c();\n")]
        )
        self.assertEqual(page.steps, [])

    def test_a_page_may_be_slow(self):
        self.assertTrue(Page("page.md", "<!-- slow -->\n# Page\n").is_slow)
        self.assertFalse(Page("page.md", "# Page\n\n```text\n<!-- slow -->\n```\n").is_slow)

    def test_a_mark_without_a_reason_is_refused(self):
        with self.assertRaisesRegex(PageError, "page.md:1: 'not run' says no reason"):
            Page("page.md", "<!-- not run: -->\n```python\n1\n```\n")

    def test_anchors_are_those_of_the_headings(self):
        page = Page("page.md", "# A `b`, c\n\n## Time\n\n## Time\n\n```sh\n# no heading\n```\n")
        self.assertEqual(page.anchors(), {"a-b-c", "time", "time-1"})
