"""Every example of every page runs, and prints what the page shows. README.md in this folder has the rules."""

import importlib.machinery
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.document_pages import Page, all_pages
from tests.document_shape import difference
from tests.support import PYTHON, ROLE, ROOT

#: The folder of the packages that pages need.
PACKAGES = [os.environ.get(name, "") for name in ("STACKWEAVE_TEST_TOOLS", "STACKWEAVE_PAGE_PACKAGES")]
#: Frames differ between versions and builds, so pages are compared only on the version that they were made with.
COMPARED = sys.version_info[:2] == (3, 12)
#: The folder of the pictures, and the maximum size of one.
IMAGE_BYTES = 150_000
#: The frames of this file are below those of a page.
RUNNER = "document_runner.py"
#: The commands that pages call, as an installed package and an activated environment have them.
COMMANDS = {
    "stackweave": f"#!{PYTHON}\nimport sys\n\nfrom stackweave.__main__ import main\n\nsys.exit(main())\n",
    "python": f'#!/bin/sh\nexec "{PYTHON}" "$@"\n',
    "pytest": f'#!/bin/sh\nexec "{PYTHON}" -m pytest "$@"\n',
}


class PageCase(unittest.TestCase):
    """Runs the steps of a page in a folder with the files that pages mention."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "work")
        self.binaries = os.path.join(folder.name, "bin")
        shutil.copytree(os.path.join(ROOT, "tests", "document_files"), self.folder)
        ignored = shutil.ignore_patterns("__pycache__", "c-*", "cpp-*")
        shutil.copytree(os.path.join(ROOT, "examples"), os.path.join(self.folder, "examples"), ignore=ignored)
        os.mkdir(self.binaries)
        for name, text in COMMANDS.items():
            path = os.path.join(self.binaries, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)

    def run_page(self, page):
        if not COMPARED and (page.is_slow or ROLE != "all"):
            self.skipTest("pages run on the version that they were made with")
        find = importlib.machinery.PathFinder.find_spec
        missing = [name for name in page.needs if find(name, [*sys.path, *PACKAGES]) is None]
        if missing:
            self.skipTest(f"{page.path} needs {', '.join(missing)}")
        for step, result in zip(page.steps, self.results(page)):
            with self.subTest(page=f"{page.path}:{step.line}"):
                self.check(step, result)

    def results(self, page):
        """Returns the output of each step. Steps after one that failed were not run."""
        steps = [{**vars(step), "commands": [command for command, _ in step.commands()]} for step in page.steps]
        search = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *PACKAGES]))
        environment = {
            **os.environ,
            "PATH": self.binaries + os.pathsep + os.environ["PATH"],
            "PYTHONPATH": search,
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        if page.needs:
            # Other packages warn about each other.
            environment["PYTHONWARNINGS"] = "ignore"
        done = subprocess.run(
            [PYTHON, "-X", "faulthandler", os.path.join(ROOT, "tests", RUNNER)],
            input=json.dumps(steps),
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=environment,
            timeout=300,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{page.path}\n{done.stdout}")
        return json.loads(done.stdout)

    def check(self, step, result):
        if "skipped" in result:
            self.skipTest(f"needs {result['skipped']}")
        if "failed" in result:
            self.fail(result["failed"] + result["printed"])
        if step.kind == "python":
            self.compare(step.expected, result["printed"], step)
        elif step.kind == "sh":
            self.check_commands(step, result["commands"])

    def check_commands(self, step, results):
        shown = step.commands()
        for (command, expected), done in zip(shown, results):
            last = done is results[-1]
            self.assertEqual(done["status"], step.status if last else 0, f"{command}\n{done['printed']}")
            self.compare(expected, done["printed"], step, command)
        if step.expected is not None:
            self.compare(step.expected, "".join(done["printed"] for done in results), step)

    def compare(self, expected, printed, step, what=""):
        if expected is None or not step.is_checked or not COMPARED:
            return
        printed = "".join(line for line in printed.splitlines(True) if RUNNER not in line)
        found = difference(expected, printed, step.any_order, step.exact)
        self.assertIsNone(found, f"{what}\n{found}\n--- printed\n{printed}\n--- the page\n{expected}")


class Examples(PageCase):
    """Has a test for each page with steps."""

    def test_a_page_that_is_wrong_is_found(self):
        wrong = {
            "```python\nprint(3)\n```\n\n```text\nthree\n```\n": "the page shows",
            "```python\n1 / 0\n```\n": "ZeroDivisionError",
            "```sh\npython -c 'import sys; sys.exit(2)'\n```\n": "2 != 0",
            "```console\n$ python -c 'print(\"yes\")'\nno\n```\n": "the page shows",
            "<!-- status: 3 -->\n```sh\npython -c 'pass'\n```\n": "0 != 3",
        }
        for text, message in wrong.items():
            page = Page("wrong.md", text)
            with self.subTest(text=text), self.assertRaisesRegex(AssertionError, message):
                for step, result in zip(page.steps, self.results(page)):
                    self.check_anywhere(step, result)

    def test_the_output_of_an_unchecked_block_does_not_matter(self):
        command = "$ python -c 'print(\"yes\")'"
        python = "```python\nprint(3)\n```\n\n```text\nthree\n```\n"
        for text in (f"```console\n{command}\nno\n```\n", f"```sh\n{command[2:]}\n```\n\n```text\nno\n```\n", python):
            page = Page("free.md", "<!-- not checked: it differs -->\n" + text)
            with self.subTest(text=text):
                self.assertEqual(len(page.not_run), 1)
                for step, result in zip(page.steps, self.results(page)):
                    self.check_anywhere(step, result)

    def check_anywhere(self, step, result):
        """Compares pages that have the same words on each version."""
        global COMPARED
        before, COMPARED = COMPARED, True
        try:
            self.check(step, result)
        finally:
            COMPARED = before


def add_pages():
    for page in all_pages():
        if page.steps:
            name = "".join(letter if letter.isalnum() else "_" for letter in page.path[: -len(".md")])
            setattr(Examples, f"test_page_{name}", lambda self, page=page: self.run_page(page))


add_pages()


class Links(unittest.TestCase):
    def setUp(self):
        self.pages = {page.path: page for page in all_pages()}

    def test_links_lead_to_pages_and_headings_that_exist(self):
        for page in self.pages.values():
            for path, anchor in page.links():
                with self.subTest(page=page.path, link=f"{path}#{anchor}"):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)))
                    if anchor and path.endswith(".md"):
                        there = self.pages.get(path) or Page(path)
                        self.assertIn(anchor, there.anchors())

    def test_pictures_exist_and_are_small(self):
        shown = {image for page in self.pages.values() for image in page.images()}
        for image in shown:
            with self.subTest(image=image):
                self.assertLess(os.path.getsize(os.path.join(ROOT, image)), IMAGE_BYTES)
        there = {os.path.join("docs/images", name) for name in os.listdir(os.path.join(ROOT, "docs", "images"))}
        self.assertEqual(there - shown, set(), "pictures that no page shows")

    def test_every_page_is_reached_from_the_index(self):
        reached, waiting = set(), ["docs/README.md"]
        while waiting:
            path = waiting.pop()
            if path in self.pages and path not in reached:
                reached.add(path)
                waiting += [target for target, _ in self.pages[path].links()]
        unreached = {path for path in self.pages if not path.startswith("docs/decisions/")} - reached
        self.assertEqual(unreached - {"README.md"}, set())

    def test_skipped_blocks_have_a_reason(self):
        for page in self.pages.values():
            for line, reason in page.not_run:
                with self.subTest(page=f"{page.path}:{line}"):
                    self.assertGreater(len(reason.split()), 2)
