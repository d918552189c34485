"""Files of other users do not harm a user that reads them."""

import contextlib
import cProfile
import io
import marshal
import os
import pstats
import re
import unittest
from xml.etree import ElementTree

import stackweave
from stackweave._printable import printable
from stackweave._reading.memory_devices import DeviceMemory, DeviceMoment, Devices
from stackweave.torch import dynamo
from tests.recordings import RecordingCase
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest


def outer():
    return sum(inner(n) for n in range(20))


def inner(n):
    return len(repr(n))


class Tables(RecordingCase):
    def drawn(self, content, name="a.prof"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return self.drawn_of(path)

    def drawn_of(self, path):
        with contextlib.redirect_stdout(io.StringIO()) as message:
            svg = dynamo.DynamoProfilerState().generate_svg(path)
        return svg, message.getvalue()

    def test_tables_of_cprofile_are_read_as_marshal_writes_them(self):
        profile = cProfile.Profile()
        profile.runcall(outer)
        table = pstats.Stats(profile).stats
        for version in range(marshal.version + 1):
            with self.subTest(version=version):
                svg, message = self.drawn(marshal.dumps(table, version), f"{version}.prof")
                self.assertIsNotNone(svg, message)
                boxes = [group for group in ElementTree.parse(svg).getroot().iter() if group.get("class") == "box"]
                found = sorted((int(box.get("data-calls")), int(box.get("data-primitive"))) for box in boxes)
                self.assertEqual(found, sorted((row[1], row[0]) for row in table.values()))

    def test_hostile_tables_are_refused(self):
        hostile = {
            "nested": b")\x01" * 2_000_000,
            "lists": b"[\x01\x00\x00\x00" * 500_000,
            "itself": b"\xa9\x01r\x00\x00\x00\x00",
            "long": b"(\xff\xff\xff\x7f",
            "code": marshal.dumps(compile("1", "a", "eval")),
            "other": marshal.dumps({"a": 1}),
            "empty": b"",
        }
        for name, content in hostile.items():
            with self.subTest(name):
                svg, message = self.drawn(content, f"{name}.prof")
                self.assertIsNone(svg)
                self.assertIn("it is not a cProfile file", message)

    def test_a_pipe_is_not_waited_for(self):
        path = os.path.join(self.folder, "pipe.prof")
        os.mkfifo(path)
        svg, message = self.drawn_of(path)
        self.assertIsNone(svg)
        self.assertIn("not a regular file", message)


class Sources(RecordingCase):
    def record(self):
        with stackweave.trace(self.path):
            outer()
        return stackweave.open(self.path)

    def test_own_recordings_have_sources_and_foreign_ones_do_not(self):
        recording = self.record()
        own = recording.export(os.path.join(self.folder, "own.html"))
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        os.chown(self.path, 12345, -1)
        foreign = stackweave.open(self.path)
        with self.assertWarnsRegex(Warning, "Source files are left out"):
            left_out = foreign.export(os.path.join(self.folder, "foreign.html"))
        put_in = foreign.export(os.path.join(self.folder, "all.html"), sources=True)
        sizes = [os.path.getsize(path) for path in (own, left_out, put_in)]
        self.assertGreater(sizes[0], sizes[1] + 500)
        self.assertGreater(sizes[2], sizes[1] + 500)


class Printable(unittest.TestCase):
    def test_nothing_that_a_terminal_obeys_stays(self):
        hostile = "a\x1b]0;t\x07\r\tb\x9b31m\u202e\u2066\u2069\u200e\u200f\u2028c\x7f\nd \u00fc\u65e5"
        cleaned = printable(hostile)
        self.assertIsNone(
            re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", cleaned)
        )
        self.assertEqual(len(cleaned), len(hostile))
        self.assertTrue(cleaned.endswith("\nd \u00fc\u65e5"))


class Objects(RecordingCase):
    """A prompt shows the texts of objects of a recording."""

    HOSTILE = "a\x1b]0;t\x07\x9b31m\u202e"

    def assert_plain(self, *objects):
        for each in objects:
            for shown in (str(each), repr(each)):
                self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), ascii(shown))

    def test_frames_events_and_trees(self):
        with self.recording() as recording, recording.span(self.HOSTILE):
            recording.instant("inner")
        opened = stackweave.open(self.path)
        for event in opened.events():
            self.assert_plain(event, event.frame, event.caller, event.stack)
        tree = opened.tree()
        self.assert_plain(tree, *tree.children)
        self.assertEqual(tree.children[0].name, self.HOSTILE)

    def test_memory(self):
        with self.recording() as recording, recording.span(self.HOSTILE):
            recording.allocation(4096, 1 << 20)
        usage = stackweave.open(self.path).memory().peak()
        tree = usage.tree(all=True)
        while tree.children:
            (tree,) = tree.children
            self.assert_plain(tree)
        self.assert_plain(usage, usage.tree(all=True), *usage.rows)

    def test_devices(self):
        moment = DeviceMoment(0.0, 1, 0, 1)
        device = DeviceMemory(0, 1, self.HOSTILE, 1 << 30, moment, moment, [], [], None, [])
        self.assert_plain(device, Devices([device]))
