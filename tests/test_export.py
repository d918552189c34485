"""Recordings are exported to the formats of viewers, from Python."""

import io
import json
import os
import re
import runpy
import subprocess
import warnings
import zlib
from base64 import b64decode

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

FORMATS = {
    "report": "out.html",
    "pstats": "out.prof",
    "chrome": "out.json",
    "perfetto": "out.pftrace",
    "speedscope": "out.speedscope.json",
    "pprof": "out.pb.gz",
    "folded": "out.folded",
    "flamegraph": "out.svg",
    "callgraph": "out.callgraph.svg",
    "dot": "out.dot",
    "firefox": "out.firefox.json",
    "json": "out.jsonl",
    "parquet": "out.parquet",
}


MEMORY_FORMATS = {"pytorch": "out.pickle", "allocations": "out.csv", "memory-curve": "out.memory.svg"}


def report(path):
    """Returns the head of a report, and a function that returns the bytes of a block."""
    with open(path, encoding="utf-8") as file:
        blocks = dict(
            re.findall(r'<script type="application/vnd.stackweave" id="sw-(\w+)">([^<]*)</script>', file.read())
        )

    def block(name):
        return zlib.decompress(b64decode(blocks[str(name)], validate=True))

    return json.loads(block("head")), block


class Export(RecordingCase):
    def setUp(self):
        super().setUp()
        with self.recording() as recording, recording.span("outer"):
            for _ in range(3):
                with recording.span("inner"):
                    recording.instant("seen")
        self.opened = stackweave.open(self.path)

    def out(self, name):
        return os.path.join(self.folder, name)

    def test_every_format_is_written_by_its_name_and_by_its_suffix(self):
        for format, name in FORMATS.items():
            with self.subTest(format):
                path = self.opened.export(self.out(name))
                self.assertTrue(os.path.exists(path))
                if format == "parquet":
                    continue
                other = self.opened.export(self.out("other"), format=format, overwrite=True)
                self.assertGreater(os.path.getsize(other), 0)
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith(".")])

    def test_an_export_past_its_limit_leaves_nothing_and_says_what_helps(self):
        for format, name in FORMATS.items():
            with self.subTest(format):
                with self.assertRaisesRegex(stackweave.ExportError, "larger than its limit of 20 B.*max_size="):
                    self.opened.export(self.out(name), max_size=20)
                self.assertFalse([left for left in os.listdir(self.folder) if not left.endswith(".swv")])
        for size in (1 << 30, "1.5 GiB", "4GB", "none", None):
            self.opened.export(self.out("a.json"), max_size=size, overwrite=True)
        for size, error in (("much", ValueError), (0, ValueError), (1.5, TypeError)):
            with self.assertRaisesRegex(error, "max_size"):
                self.opened.export(self.out("b.json"), max_size=size)

    def test_formats_of_memory_say_that_there_is_none(self):
        for format, name in MEMORY_FORMATS.items():
            with self.subTest(format):
                with self.assertRaisesRegex(stackweave.ExportError, "memory"):
                    self.opened.export(self.out(name))
                self.assertFalse(os.path.exists(self.out(name)))

    def test_statistics_are_those_of_pstats(self):
        stats = self.opened.stats()
        calls = {name: row[:2] for (_, _, name), row in stats.stats.items()}
        self.assertEqual(calls, {"outer": (1, 1), "inner": (3, 3)})
        text = io.StringIO()
        stats.stream = text
        stats.sort_stats("cumulative").print_stats().print_callers()
        self.assertIn("inner", text.getvalue())

    def test_a_chrome_trace_has_every_span(self):
        with open(self.opened.export(self.out("a.json"))) as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual([event["name"] for event in events if event["ph"] == "X"].count("inner"), 3)

    def test_a_report_has_every_call_and_the_sources(self):
        with open(self.out("program.py"), "w", encoding="utf-8") as file:
            file.write("# \u00fcber </script>\ndef called():\n    pass\nfor _ in range(7):\n    called()\n")
        with stackweave.trace(self.out("trace.swv")) as trace:
            runpy.run_path(self.out("program.py"))
        head, block = report(trace.recording.export(self.out("trace.html"), title="</title>7 calls"))
        self.assertEqual((head["title"], head["before"]), ("</title>7 calls", None))
        self.assertEqual({tree["measure"] for tree in head["trees"]}, {"time"})
        strings = json.loads(block(head["strings"]))
        texts = {strings[source["file"]]: block(source["block"]).decode() for source in head["sources"]}
        self.assertIn("def called():", texts[self.out("program.py")])
        self.assertIn("called", strings)
        path = trace.recording.export(self.out("after.html"), sources=False, before=self.path)
        head, _ = report(path)
        self.assertEqual((head["sources"], head["before"] is not None), ([], True))
        self.assertEqual({tree["side"] for tree in head["trees"]}, {"before", "after"})

    def test_an_existing_file_is_replaced_only_with_overwrite(self):
        path = self.out("a.svg")
        self.opened.export(path)
        with self.assertRaisesRegex(FileExistsError, "overwrite"):
            self.opened.export(path)
        self.opened.export(path, overwrite=True)

    def test_export_errors_name_the_problem(self):
        with self.assertRaisesRegex(ValueError, "there is no format xls; the formats are allocations, callgraph, "):
            self.opened.export(self.out("a"), format="xls")
        with self.assertRaisesRegex(ValueError, "the format can't be derived"):
            self.opened.export(self.out("a.xls"))
        with self.assertRaisesRegex(OSError, "no/such/a.svg"):
            self.opened.export(self.out("no/such/a.svg"))
        with self.assertRaisesRegex(stackweave.RecordingError, "no process 1"):
            self.opened.export(self.out("a.svg"), process=1)

    def test_an_incomplete_recording_is_exported_with_a_warning(self):
        with open(self.path, "rb") as file:
            whole = file.read()
        with open(self.out("cut.swv"), "wb") as file:
            file.write(whole[:-3])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stackweave.open(self.out("cut.swv")).export(self.out("cut.folded"))
        self.assertTrue(any("not closed" in str(warning.message) for warning in caught))

    def test_the_command_exports(self):
        done = subprocess.run(
            [PYTHON, "-m", "stackweave", "export", "out.swv", "--format", "folded"],
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertRegex(done.stderr, r"Wrote out\.folded \(folded, ")
        with open(self.out("out.folded")) as file:
            self.assertIn("outer;inner", file.read())

    def test_the_command_replaces_an_older_report_and_nothing_else(self):
        def command(*arguments):
            done = subprocess.run(
                [PYTHON, "-m", "stackweave", "report", "out.swv", *arguments],
                capture_output=True,
                text=True,
                cwd=self.folder,
                timeout=60,
            )
            return done.returncode, done.stderr

        for _ in range(2):
            status, message = command()
            self.assertEqual(status, 0, message)
            self.assertRegex(message, r"Wrote out\.html \(report, .*\)\. Open it in a browser: file:///.*/out\.html\n")
        with open(self.out("mine.html"), "w") as file:
            file.write("mine")
        self.assertEqual(
            command("-o", "mine.html"), (1, "stackweave: mine.html already exists; --overwrite replaces it\n")
        )
        self.assertEqual(command("-o", "mine.html", "--overwrite")[0], 0)
        head, _ = report(self.out("mine.html"))
        self.assertEqual([tree["nodes"] for tree in head["trees"]], [3])
