"""The examples of docs/reference/record.md print what the page shows."""

import os
import re
import shlex
import subprocess

import stackweave
from tests.record_support import calls_of
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

PAGE = os.path.join(ROOT, "docs", "reference", "record.md")


class Page(RecordingCase):
    def setUp(self):
        super().setUp()
        with open(PAGE) as file:
            self.page = file.read()
        self.program, *rest = self.blocks("python")
        self.code = "".join(rest)
        with open(os.path.join(self.folder, "prices.py"), "w") as file:
            file.write(self.program)

    def blocks(self, language):
        return re.findall(rf"```{language}\n(.*?)```", self.page, re.DOTALL)

    def run_here(self, *arguments):
        done = subprocess.run([PYTHON, *arguments], capture_output=True, text=True, cwd=self.folder, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_commands_run_and_print_what_the_page_shows(self):
        lines = [line for block in self.blocks("sh") for line in block.splitlines()]
        self.assertEqual(len(lines), 3)
        for line in lines:
            with self.subTest(line):
                done = self.run_here("-m", *shlex.split(line))
                self.assertEqual(done.stdout, "2969899\n")
        self.assertIn("heap.swv", self.files())
        messages = self.run_here("-m", "stackweave", "record", *self.here("prices.py")).stderr
        sample = self.blocks("text")[0]
        self.assertEqual(
            shape(messages),
            shape(sample.partition("\n")[2].replace("stackweave report", "python -m stackweave report")),
        )

    def here(self, program):
        return ["-o", "prices.16596.swv", "--overwrite", program]

    def test_the_commands_that_read_the_file_run(self):
        self.run_here("-m", "stackweave", "record", "-q", *self.here("prices.py"))
        for command in re.findall(r"^\| `(stackweave \w+ .*?)` \|", self.page, re.MULTILINE):
            with self.subTest(command):
                self.run_here("-m", *shlex.split(command))
        opened = stackweave.open(os.path.join(self.folder, "prices.16596.swv"))
        # The imports of the program are recorded, too. They compile patterns with a function of the same name.
        costs = [cost for cost in opened.top(all=True) if (cost.filename or "").endswith("prices.py")]
        self.assertEqual({cost.name: cost.calls for cost in costs}["parse"], 20_000)
        self.assertEqual(calls_of(opened, "loads"), 20_000)

    def test_the_python_runs(self):
        shown = self.run_here("-c", self.code).stdout.splitlines()
        self.assertRegex(shown[0], r"\A60\d\d calls\Z")
        self.assertEqual(shown[2:], ["2000 calls of loads", "True"], shown)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "load.html")))


def shape(text):
    """Returns a text without the parts that differ from run to run."""
    text = re.sub(r"\S+ -m stackweave", "stackweave", text)
    return re.sub(r"\d[\d.,]*( [KM]iB| m?s)?", "N", text)
