"""Every command and format reads a recording of calls and memory."""

import json
import os
import pstats
import subprocess

import stackweave
from tests.memory_support import bytes_of_library
from tests.record_support import RunCase, calls_of
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

SIZE = 1_000_000
#: The formats, by the suffixes of their files.
FORMATS = {
    "html": "report",
    "prof": "pstats",
    "json": "chrome",
    "pftrace": "perfetto",
    "speedscope.json": "speedscope",
    "pb.gz": "pprof",
    "folded": "folded",
    "svg": "flamegraph",
    "callgraph.svg": "callgraph",
    "dot": "dot",
    "firefox.json": "firefox",
    "jsonl": "json",
    "pickle": "pytorch",
    "csv": "allocations",
    "memory.svg": "memory-curve",
}


class ReadingCase(RunCase):
    def setUp(self):
        super().setUp()
        self.fill(self.path, 5)

    def fill(self, path, calls):
        def leaf():
            return sum(range(100_000))

        def hold():
            kept.append(self.take(SIZE))

        kept = []
        with stackweave.record(path, calls={"gc": False}) as record:
            for _ in range(calls):
                leaf()
            hold()
        self.addCleanup(lambda: [self.give(block) for block in kept])
        return record

    def shown(self, *arguments, status=0):
        done = subprocess.run(
            [PYTHON, "-m", "stackweave", *arguments], capture_output=True, text=True, cwd=self.folder, timeout=120
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout


class Commands(ReadingCase):
    def test_top_and_tree_show_time_by_default(self):
        self.assertRegex(self.shown("top", "out.swv", "--all"), r"(?m)^ *5 .*leaf")
        by_peak = self.shown("top", "out.swv", "--measure", "peak", "-n", "1000")
        self.assertNotIn("leaf", by_peak)
        self.assertRegex(by_peak, r"(?m)^.*hold")
        self.assertRegex(self.shown("tree", "out.swv", "--all"), r"leaf")
        self.assertRegex(self.shown("tree", "out.swv", "--measure", "peak", "--all"), r"take")

    def test_heap_shows_memory(self):
        self.assertRegex(self.shown("heap", "out.swv"), r"take +blocks\.so:\d+")

    def test_info_shows_both(self):
        self.assertRegex(
            self.shown("info", "out.swv"), r"(?m)^  options .*, calls 1, memory\.mode history, .*recorder memory"
        )
        kinds = {kind for process in stackweave.open(self.path).info()["processes"] for kind in process["kinds"]}
        self.assertLessEqual({"call", "malloc"}, kinds)

    def test_merge_has_all_of_both(self):
        self.fill(os.path.join(self.folder, "more.swv"), 7)
        self.shown("merge", "out.swv", "more.swv", "-o", "all.swv")
        opened = stackweave.open(os.path.join(self.folder, "all.swv"))
        self.assertEqual(calls_of(opened, "leaf"), 12)
        self.assertEqual(opened.tree().measure, "time")
        self.assertEqual(bytes_of_library(opened.memory().leaks()), 2 * SIZE)

    def test_diff_compares_either(self):
        self.fill(os.path.join(self.folder, "more.swv"), 7)
        self.assertIn("leaf", self.shown("diff", "out.swv", "more.swv", "--all"))
        text = self.shown("diff", "out.swv", "more.swv", "--measure", "peak", "--all")
        self.assertNotIn("leaf", text)


class Formats(ReadingCase):
    def written(self, ending):
        path = os.path.join(self.folder, f"written.{ending}")
        self.record_ = stackweave.open(self.path)
        self.record_.export(path, format=FORMATS[ending])
        with open(path, "rb") as file:
            return file.read()

    def test_every_format_is_written(self):
        for ending in FORMATS:
            with self.subTest(ending):
                self.assertGreater(len(self.written(ending)), 50)

    def test_statistics_are_of_calls(self):
        self.written("prof")
        stats = pstats.Stats(os.path.join(self.folder, "written.prof")).stats
        calls = {name.rpartition(".")[2]: row[1] for (_file, _line, name), row in stats.items()}
        self.assertEqual((calls["leaf"], calls["hold"]), (5, 1))

    def test_a_chrome_timeline_has_both(self):
        events = json.loads(self.written("json"))
        events = events["traceEvents"] if isinstance(events, dict) else events
        names = [event["name"].rpartition(".")[2] for event in events if event.get("ph") in ("X", "B")]
        self.assertEqual(names.count("leaf"), 5)
        self.assertIn("memory.heap", {event["name"] for event in events if event.get("ph") == "C"})

    def test_lines_have_both(self):
        rows = [json.loads(line) for line in self.written("jsonl").splitlines()]
        kinds = {row.get("kind") for row in rows}
        self.assertLessEqual({"call", "malloc"}, kinds)

    def test_stacks_are_of_time_or_of_memory(self):
        self.assertIn(b"leaf", self.written("folded"))
        path = os.path.join(self.folder, "peak.folded")
        self.record_.export(path, measure="peak")
        with open(path) as file:
            folded = file.read()
        self.assertNotIn("leaf", folded)
        counted = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines() if "hold;" in line or "take" in line)
        self.assertEqual(counted, SIZE)
