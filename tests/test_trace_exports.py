"""Readers of exports see what was traced."""

import io
import json
import os
import pstats

from tests.support import run_on_oldest_and_newest
from tests.test_export import FORMATS
from tests.trace_support import TraceCase, load

setUpModule = run_on_oldest_and_newest


class Exports(TraceCase):
    """What others read is what was traced."""

    def setUp(self):
        super().setUp()
        self.traced = self.trace(load("recursion").main)

    def test_pstats_reads_it(self):
        path = os.path.join(self.folder, "out.prof")
        self.traced.recording.export(path)
        stats = pstats.Stats(path, stream=io.StringIO())
        stats.sort_stats("cumulative").print_stats(5)
        stats.print_callers("fibonacci")
        (row,) = (row for key, row in stats.stats.items() if key[2] == "fibonacci")
        self.assertEqual(row[:2], (1, 287))

    def test_chrome_reads_it(self):
        """Complete events of one thread nest, and there is one for each span."""
        path = os.path.join(self.folder, "out.json")
        self.traced.recording.export(path, format="chrome")
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        spans = [event for event in events if event["ph"] in ("X", "B")]
        self.assertEqual(sum(event["name"].endswith("fibonacci") for event in spans), 287)
        ends = []
        for event in sorted(spans, key=lambda event: (event["ts"], -event.get("dur", 0))):
            if event["ph"] == "X":
                while ends and ends[-1] <= event["ts"]:
                    ends.pop()
                self.assertTrue(not ends or event["ts"] + event["dur"] <= ends[-1] + 0.002, event)
                ends.append(event["ts"] + event["dur"])

    def test_every_format_takes_it(self):
        for format in sorted(FORMATS.keys() - {"pstats", "chrome", "parquet"}):
            with self.subTest(format):
                path = os.path.join(self.folder, f"out.{format}")
                self.traced.recording.export(path, format=format)
                with open(path, "rb") as file:
                    self.assertGreater(len(file.read()), 100)
