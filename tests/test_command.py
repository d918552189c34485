"""The command of the package: python -m stackweave."""

import json
import os
import subprocess

from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT


class Command(RecordingCase):
    def command(self, *arguments, status=0):
        done = subprocess.run(
            [PYTHON, "-m", "stackweave", *arguments], capture_output=True, text=True, cwd=self.folder, timeout=60
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, ROOT)
        with self.recording() as recording, recording.span("outer"), recording.span("inner"):
            pass

    def test_a_recording_is_shown(self):
        tree, said = self.command("tree", "--min", "0", "out.swv")
        self.assertLess(tree.index("outer"), tree.index("inner"))
        self.assertEqual(said, "")
        info = json.loads(self.command("info", "--json", "out.swv")[0])
        self.assertEqual([process["pid"] for process in info["processes"]], [os.getpid()])

    def test_names_of_files_may_be_any_bytes(self):
        odd = os.fsencode(self.folder) + b"/\xff odd.swv"
        os.rename(self.path, odd)
        self.command("info", os.fsdecode(odd))

    def test_what_can_not_be_done_is_one_sentence_and_a_status(self):
        said = self.command("tree", "gone.swv", status=1)[1]
        self.assertRegex(said, r"\Astackweave: .*gone\.swv.*\n\Z")
        said = self.command("paint", status=2)[1]
        self.assertEqual(said, "stackweave: there is no command paint; see stackweave --help\n")
        self.assertIn("merge", self.command("--help")[0])
