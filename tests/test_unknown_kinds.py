"""A recording with kinds of events that no code knows opens with all of its figures, and says that they are there."""

import importlib.util
import os
import unittest
import zlib

import stackweave
from tests.recordings import RecordingCase
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

READER = os.path.join(os.path.dirname(__file__), "..", "crates", "stackweave-recording", "tests", "reader.py")
#: Names of kinds, and names of the same length that no code has.
UNKNOWN = {"begin": "await", "instant": "notable", "counter": "reading"}


def reader():
    """Returns the reader that was written from the page about the format."""
    spec = importlib.util.spec_from_file_location("recording_reader", READER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_unknown_kinds(data):
    """Returns a recording with other names of its kinds."""
    read, out, at = reader(), b"", 0
    for kind, section, payload in read.blocks(data):
        head = read.HEADER.unpack_from(data, at)
        at += read.HEADER.size + head[5]
        if kind == read.DEFINITIONS:
            for name, other in UNKNOWN.items():
                length = bytes([len(name)])
                payload = payload.replace(length + name.encode(), length + other.encode())
        values = [head[0], kind, head[2], 0, 0, len(payload), len(payload), section, zlib.crc32(payload)]
        header = read.HEADER.pack(*values, 0)
        out += header[:28] + zlib.crc32(header[:28]).to_bytes(4, "little") + payload
    return out


class UnknownKinds(RecordingCase):
    def setUp(self):
        super().setUp()
        with self.recording() as recording:
            for number in range(5):
                with recording.span("outer"):
                    with recording.span("inner"):
                        recording.counter("queue", number)
                    recording.instant("tick", stack=False)
        self.known = stackweave.open(recording.path)
        path = os.path.join(self.folder, "unknown.swv")
        with open(recording.path, "rb") as file:
            data = with_unknown_kinds(file.read())
        with open(path, "wb") as file:
            file.write(data)
        self.unknown = stackweave.open(path)

    def test_it_says_which_kinds_there_are(self):
        known, unknown = (each.info()["processes"][0]["kinds"] for each in (self.known, self.unknown))
        self.assertEqual(unknown, {UNKNOWN.get(name, name): count for name, count in known.items()})
        self.assertEqual([unknown[name] for name in UNKNOWN.values()], [10, 5, 5])
        self.assertEqual(self.unknown.info()["missing"], self.known.info()["missing"])

    def test_it_has_all_figures(self):
        def figures(recording):
            phases = [(row.name, row.calls, row.self, row.total) for row in recording.phases()]
            children = [(node.name, node.calls, node.total) for node in recording.tree().children]
            return list(recording.top()), phases, children, recording.stats().total_calls

        self.assertEqual(figures(self.unknown), figures(self.known))
        self.assertEqual({row.name: row.calls for row in self.unknown.top()}, {"outer": 5, "inner": 5})

    def test_its_events_have_their_roles_and_values(self):
        known, unknown = list(self.known.events()), list(self.unknown.events())
        self.assertEqual([event.kind for event in unknown], [UNKNOWN.get(event.kind, event.kind) for event in known])
        for of in ("role", "time_ns", "name", "values", "details", "thread"):
            self.assertEqual([getattr(event, of) for event in unknown], [getattr(event, of) for event in known])

    def test_it_is_exported(self):
        for name in ("out.json", "out.jsonl", "out.svg", "out.html"):
            path = self.unknown.export(os.path.join(self.folder, name))
            self.assertGreater(os.path.getsize(path), 100)


if __name__ == "__main__":
    unittest.main()
