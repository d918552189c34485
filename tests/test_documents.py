"""The demo, and the examples of the documents, as a newcomer runs them."""

import os
import re
import unittest

from tests.support import ROOT, run_python


class Documents(unittest.TestCase):
    def test_the_demo_shows_native_frames_between_the_python_frames(self):
        shown = run_python("import runpy; runpy.run_path('examples/woven.py', run_name='__main__')")
        rows = iter(shown.splitlines())
        for name in ["<module>", "main", "|", "order_of_letters", "|", "compare", "take_both", "end of stack"]:
            self.assertTrue(any(name in row for row in rows), f"{name} is missing or out of order:\n{shown}")
        self.assertRegex(shown, r"stackweave\.capture\(\) +[0-9.]+ us")

    def test_the_python_of_the_readme_runs(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        self.assertTrue(blocks)
        for block in blocks:
            run_python(block)
