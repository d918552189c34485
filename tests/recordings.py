"""What the tests of recordings share."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest

import stackweave
from tests.support import PYTHON, ROOT


class RecordingCase(unittest.TestCase):
    """Has a folder for its recordings."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stackweave-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = os.path.join(self.folder, "out.swv")

    @contextlib.contextmanager
    def recording(self, **options):
        with stackweave.Recorder(self.path, overwrite=True, **options) as recording:
            yield recording

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".swv"))

    def run_script(self, code, *arguments, status=0, stderr="", **environment):
        """Runs a script whose first argument is the path, and gives what it printed. It must end as expected."""
        done = subprocess.run(
            [PYTHON, "-X", "faulthandler", "-c", code, self.path, *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
            timeout=120,
        )
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertRegex(done.stderr, rf"(?s)\A{stderr}\Z")
        return done.stdout


def recording_of(source):
    """Returns the recording of a recorder, or the recording itself."""
    return source.recording if isinstance(source, stackweave.Recorder) else source


def told(events):
    """Each event in short: its role, its name and what belongs to it."""
    return [told_event(event) for event in events]


def told_event(event):
    parts = [event.role, event.name, *event.values.values(), event.details or None]
    return tuple(part for part in parts if part is not None)


def python_names(event):
    return [frame.name for frame in event.stack if frame.kind == "python"]
