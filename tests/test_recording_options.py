"""The options of a recording accept texts like "64MB"."""

import os
import unittest

import stackweave
from stackweave._options.special_kinds import Ring
from stackweave._sizes import size_of
from tests.recordings import RecordingCase
from tests.support import run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest


class Sizes(unittest.TestCase):
    def test_sizes_are_read_as_people_write_them(self):
        for text, expected in [
            (1, 1),
            (1 << 20, 1 << 20),
            ("1", 1),
            ("12B", 12),
            ("64MB", 64_000_000),
            ("64 MB", 64_000_000),
            ("64 mib", 64 << 20),
            ("1.5GiB", 3 << 29),
            ("0.5k" + "b", 500),
            (" 2 TB ", 2 * 10**12),
        ]:
            self.assertEqual(size_of("memory", text), expected, text)

    def test_other_sizes_are_refused(self):
        for text in ["", "MB", "64 MBytes", "-1MB", "1e6", "0", "0MB", 0, -5, 1 << 63, "10000000TB", "64M"]:
            with self.assertRaisesRegex(ValueError, "memory must be", msg=text):
                size_of("memory", text)
        for value in [1.5, None, True, b"64MB", ["64MB"]]:
            with self.assertRaisesRegex(TypeError, "memory must be a number of bytes or a size", msg=value):
                size_of("memory", value)

    def test_rings_are_sizes_or_seconds_or_both(self):
        for value, expected in [
            ("16MB", (16_000_000, None)),
            (30, (None, 30.0)),
            (0.25, (None, 0.25)),
            (("16MiB", 5), (16 << 20, 5.0)),
            ((4096, 5.5), (4096, 5.5)),
        ]:
            self.assertEqual(Ring().checked("ring", value), expected)
        for value in ["x", 0, -1, float("inf"), float("nan"), ("1MB",), ("1MB", 2, 3), ("1MB", 0), (0, 1)]:
            with self.assertRaisesRegex(ValueError, "ring must be", msg=value):
                Ring().checked("ring", value)
        for value in [True, b"x", [1, 2], ("1MB", "2")]:
            with self.assertRaisesRegex(TypeError, "ring must be", msg=value):
                Ring().checked("ring", value)


class Options(RecordingCase):
    def test_wrong_options_are_refused_before_anything_happens(self):
        for keywords, error, text in [
            ({"buffer": "much"}, ValueError, 'buffer must be a size like "64MB"'),
            ({"when_full": "panic"}, ValueError, 'when_full must be "block" or "drop", but is \'panic\''),
            ({"ring": "x"}, ValueError, "ring must be"),
            ({"dump_on": ["exits"]}, ValueError, 'dump_on may hold "exit" and "exception", but not \'exits\''),
            ({"dump_on": "exits"}, ValueError, "but not 'exits'"),
            ({"flush_every": 0}, ValueError, "flush_every must be greater than 0 seconds"),
            ({"flush_every": "often"}, TypeError, "flush_every must be a number of seconds, not str"),
            ({"follow_forks": 1}, TypeError, "follow_forks must be a bool, not int"),
            ({"subprocesses": "yes"}, TypeError, "subprocesses must be a bool, not str"),
            ({"overwrite": None}, TypeError, "overwrite must be a bool, not NoneType"),
            ({"colour": "red"}, TypeError, "unexpected keyword argument 'colour'"),
        ]:
            with self.assertRaisesRegex(error, text):
                stackweave.Recorder(self.path, **keywords)
        with self.assertRaises(TypeError):
            stackweave.Recorder(3)
        self.assertEqual(os.listdir(self.folder), [])

    def test_every_option_is_accepted(self):
        with stackweave.Recorder(
            self.path,
            buffer="1 MiB",
            when_full="drop",
            ring=("1MB", 10),
            dump_on="exit",
            flush_every=1,
            follow_forks=False,
            subprocesses=False,
            overwrite=False,
        ) as recording:
            recording.instant("x")
        self.assertTrue(recording.recording.info()["processes"][0]["ring"])
