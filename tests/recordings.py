"""Shared by the tests of recordings."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest

import stackweave
from tests.support import PYTHON, ROOT


class RecordingCase(unittest.TestCase):
    """A test with a folder for its recordings."""

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
        """Runs a script with the path as its first argument, checks how it ends, and returns what it printed."""
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


def event_tuples(events):
    """Returns each event as a tuple of its role, its name, its values and its details, where it has them."""
    return [event_tuple(event) for event in events]


def event_tuple(event):
    parts = [event.role, event.name, *event.values.values(), event.details or None]
    return tuple(part for part in parts if part is not None)


def python_names(event):
    return [frame.name for frame in event.stack if frame.kind == "python"]
