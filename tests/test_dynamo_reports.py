"""The Dynamo classes print, save and draw statistics, by themselves and as replacements of torch's classes."""

import contextlib
import cProfile
import io
import marshal
import os
import pstats
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from stackweave.torch import dynamo
from tests.dynamo_support import Caller, table, torch_profiler
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

TORCHS = torch_profiler()
SVG = "{http://www.w3.org/2000/svg}"


class ReportCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def names(self):
        return sorted(os.listdir(self.folder))

    def caller(self):
        caller = Caller(dynamo)
        caller.tree("main", ("fact", ("fact", "fact")), "<&>")
        return caller

    @contextlib.contextmanager
    def printed(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            yield out

    def dumped(self, state, *arguments, **keywords):
        with self.printed() as out:
            self.assertIsNone(state.dump_stats(*arguments, **keywords))
        return out.getvalue()


class Dumps(ReportCase):
    def test_without_timings_nothing_is_printed(self):
        self.assertEqual(self.dumped(dynamo.DynamoProfilerState(), self.path("a.prof")), "")
        self.assertEqual(self.names(), [])

    def test_each_content_is_printed_once(self):
        caller = self.caller()
        first = self.dumped(caller.state)
        self.assertEqual(first.count("=== Aggregate Timings (raw) ==="), 1)
        self.assertIn("Total timings: 5, unique functions: 3", first)
        self.assertIn("5 function calls (3 primitive calls)", first)
        self.assertEqual(self.dumped(caller.state), "")
        caller.tree("more")
        self.assertIn("Total timings: 6", self.dumped(caller.state))
        caller.state.timings[0].tottime_ns += 1_000_000_000
        self.assertIn("Total timings: 6", self.dumped(caller.state))
        self.assertEqual(self.dumped(caller.state), "")

    def test_a_file_is_saved_once_with_its_picture(self):
        caller, path = self.caller(), self.path("a.prof")
        self.dumped(caller.state)
        printed = self.dumped(caller.state, path).strip().splitlines()
        svg = self.path("a.svg")
        self.assertEqual(
            printed,
            [f"Profile saved to: {path}", f"Visualize with: snakeviz {path}", f"SVG call graph saved to: {svg}"],
        )
        self.assertEqual(table(pstats.Stats(path)), table(caller.state.generate_pstats()))
        self.assertEqual(caller.state.saved_files, [path, svg])
        os.remove(svg)
        self.assertEqual(self.dumped(caller.state, path), "")
        self.assertEqual(self.names(), ["a.prof"])
        self.dumped(caller.state, self.path("b.prof"), generate_svg=False)
        self.assertEqual(self.names(), ["a.prof", "b.prof"])

    def test_files_of_others_are_never_overwritten(self):
        path = self.path("a.prof")
        with open(path, "w") as file:
            file.write("mine")
        first, second = self.caller(), self.caller()
        printed = self.dumped(first.state, path)
        self.assertIn(f"Profile saved to: {self.path('a-2.prof')} ({path} already exists)", printed)
        self.dumped(second.state, path)
        self.assertEqual(self.names(), ["a-2.prof", "a-2.svg", "a-3.prof", "a-3.svg", "a.prof"])
        with open(path) as file:
            self.assertEqual(file.read(), "mine")
        first.tree("more")
        self.dumped(first.state, path)
        self.assertEqual(self.names(), ["a-2.prof", "a-2.svg", "a-3.prof", "a-3.svg", "a.prof"])
        self.assertIn("more", table(pstats.Stats(self.path("a-2.prof"))))
        self.assertNotIn("more", table(pstats.Stats(self.path("a-3.prof"))))

    def test_a_file_that_another_program_has_replaced_is_not_overwritten(self):
        caller, path = self.caller(), self.path("a.prof")
        self.dumped(caller.state, path, generate_svg=False)
        with open(path, "w") as file:
            file.write("mine")
        caller.tree("more")
        self.dumped(caller.state, path, generate_svg=False)
        self.assertEqual(self.names(), ["a-2.prof", "a.prof"])

    def test_a_link_to_a_file_is_not_followed_over_it(self):
        os.symlink("elsewhere", self.path("a.prof"))
        self.dumped(self.caller().state, self.path("a.prof"), generate_svg=False)
        self.assertEqual(self.names(), ["a-2.prof", "a.prof"])

    def test_names_without_suffix_and_paths_that_are_objects(self):
        import pathlib

        for _ in range(2):
            self.dumped(self.caller().state, pathlib.Path(self.folder, "profile"))
        self.assertEqual(self.names(), ["profile", "profile-2", "profile-2.svg", "profile.svg"])

    def test_a_folder_whose_name_is_no_utf8(self):
        folder = self.path("\udcff")
        os.mkdir(folder)
        state, path = self.caller().state, os.path.join(folder, "a.prof")
        self.dumped(state, path)
        self.assertEqual(state.saved_files, [path, os.path.join(folder, "a.svg")])
        with self.printed():
            self.assertEqual(state.generate_svg(path), os.path.join(folder, "a.svg"))

    def test_values_of_switches_are_no_file_names(self):
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        for word in ("1", "true", "Yes", "ON", ""):
            self.assertIn("Aggregate", self.dumped(self.caller().state, word))
        for word in ("0", "false", "No", "OFF"):
            self.assertEqual(self.dumped(self.caller().state, word), "")
        self.assertEqual(self.names(), [])

    def test_no_error_reaches_the_compilation(self):
        path = self.path("no/such/folder/a.prof")
        printed = self.dumped(self.caller().state, path)
        self.assertIn(f"The profile can't be saved to {path}: ", printed)

        class Broken(io.StringIO):
            def write(self, text):
                raise ValueError("broken")

        seen, hook = [], sys.unraisablehook
        sys.unraisablehook = seen.append
        try:
            with contextlib.redirect_stdout(Broken()):
                self.caller().state.dump_stats()
            state = dynamo.DynamoProfilerState()
            state.record_timing("no timing")
            state.dump_stats()
        finally:
            sys.unraisablehook = hook
        self.assertEqual([each.exc_type for each in seen], [ValueError, AttributeError])

    def test_generate_pstats_raises_if_its_file_can_not_be_written(self):
        with self.assertRaises(FileNotFoundError):
            self.caller().state.generate_pstats(self.path("no/such/folder/a.prof"))

    def test_generated_statistics_are_saved_and_logged(self):
        path = self.path("a.prof")
        state = self.caller().state
        with self.assertLogs("stackweave.torch.dynamo", "INFO") as logs:
            state.generate_pstats(path)
            self.caller().state.generate_pstats(output_file=path)
        self.assertEqual([record.levelname for record in logs.records], ["INFO", "INFO", "WARNING"])
        self.assertEqual(table(pstats.Stats(path)), table(pstats.Stats(self.path("a-2.prof"))))

    @unittest.skipIf(TORCHS is None, "torch is not installed, or has no Dynamo profiler")
    def test_torch_prints_the_same(self):
        callers = [Caller(classes) for classes in (dynamo, TORCHS)]
        for caller in callers:
            caller.tree("main", ("f", "f"), "h")
        printed = [self.dumped(caller.state) for caller in callers]
        ours, of_torch = ([line.rstrip() for line in text.splitlines()] for text in printed)
        self.assertEqual(ours, of_torch)


class Pictures(ReportCase):
    def boxes(self, path):
        root = ElementTree.parse(path).getroot()
        groups = [group for group in root.iter(f"{SVG}g") if group.get("class") == "box"]
        return {group.find(f"{SVG}title").text.splitlines()[0]: group for group in groups}

    def drawn(self, *arguments):
        with self.printed() as out:
            path = dynamo.DynamoProfilerState().generate_svg(*arguments)
        return path, out.getvalue()

    def test_boxes_have_the_figures_of_the_table(self):
        state = self.caller().state
        self.dumped(state, self.path("a.prof"))
        boxes = self.boxes(self.path("a.svg"))
        self.assertEqual(set(boxes), {"main (a.py:1)", "fact (a.py:1)", "<&> (a.py:1)"})
        fact = boxes["fact (a.py:1)"]
        numbers = [int(fact.get(f"data-{name}")) for name in ("calls", "primitive", "self", "total")]
        self.assertEqual(numbers, [3, 1, 5, 5])

    def test_any_profile_is_drawn(self):
        profile = cProfile.Profile()
        profile.runcall(sorted, [3, 1, 2], key=lambda each: -each)
        profile.dump_stats(self.path("c.prof"))
        path, printed = self.drawn(self.path("c.prof"))
        self.assertEqual((path, printed), (self.path("c.svg"), f"SVG call graph saved to: {path}\n"))
        self.assertIn("<built-in method builtins.sorted>", self.boxes(path))
        other, printed = self.drawn(self.path("c.prof"))
        self.assertEqual((other, "already exists" in printed), (self.path("c-2.svg"), True))
        self.assertEqual(self.drawn(self.path("c.prof"), self.path("d.svg"))[0], self.path("d.svg"))

    def test_a_caller_that_failed_is_drawn_with_what_it_called(self):
        caller = Caller(dynamo)
        caller.begin("main")
        caller.begin("fails")
        caller.tree("f")
        caller.end(failed=True)
        caller.end()
        self.dumped(caller.state, self.path("a.prof"))
        self.assertEqual(self.boxes(self.path("a.svg"))["fails (a.py:1)"].get("data-total"), "1")

    def test_old_tables_have_counts_only(self):
        rows = {("a.py", 1, "f"): (1, 1, 1.0, 1.0, {("a.py", 2, "g"): 1}), ("a.py", 2, "g"): (1, 1, 1.0, 2.0, {})}
        with open(self.path("old.prof"), "wb") as file:
            marshal.dump(rows, file)
        self.assertEqual(len(self.boxes(self.drawn(self.path("old.prof"))[0])), 2)

    def test_a_file_that_is_no_profile_is_an_error(self):
        odd = {
            "empty": b"",
            "text": b"no profile",
            "list": marshal.dumps([1]),
            "rows": marshal.dumps({("a", 1, "f"): (1, 2)}),
            "keys": marshal.dumps({"f": (1, 1, 1.0, 1.0, {})}),
            "callers": marshal.dumps({("a", 1, "f"): (1, 1, 1.0, 1.0, {("a", 1, "f"): "x"})}),
            "negative": marshal.dumps({("a", 1, "f"): (-1, 1, 1.0, 1.0, {})}),
        }
        for name, content in odd.items():
            with self.subTest(name):
                with open(self.path(name), "wb") as file:
                    file.write(content)
                path, printed = self.drawn(self.path(name))
                self.assertIsNone(path)
                self.assertRegex(printed, rf"^Failed to generate SVG of {self.path(name)}: .+\n$")
        self.assertIn("No such file", self.drawn(self.path("nothing"))[1])
        self.assertIsNone(self.drawn(self.path("nothing"))[0])
        self.assertEqual(self.names(), sorted(odd))

    def test_odd_numbers_are_drawn(self):
        row = (1, 1, float("nan"), float("inf"), {("a", 0, "f"): (1, 1, -1.0, 1e300)})
        with open(self.path("odd.prof"), "wb") as file:
            marshal.dump({("a", 0, "f"): row, ("a", -5, "g"): (2**60, 2**60, 1e-9, 2.0, {})}, file)
        self.assertEqual(len(self.boxes(self.drawn(self.path("odd.prof"))[0])), 2)


IN_PLACE = """
import sys
import torch
import torch._dynamo.dynamo_profiler as of_torch
import torch._dynamo.symbolic_convert as symbolic_convert
from stackweave.torch import dynamo

for name in dynamo.__all__:
    if hasattr(of_torch, name):
        setattr(of_torch, name, getattr(dynamo, name))
    if hasattr(symbolic_convert, name):
        setattr(symbolic_convert, name, getattr(dynamo, name))
torch._dynamo.config.dynamo_profiler = sys.argv[1]

def scale(x, factor):
    return x * factor

def factorial(x, n):
    return x if n == 0 else scale(factorial(x, n - 1), n)

@torch.compile(backend="eager")
def main(x):
    return factorial(x, 3) + scale(x, 2)

@torch.compile(backend="eager")
def other(x):
    return scale(x, 5)

assert main(torch.ones(2)).tolist() == [8.0, 8.0]
assert other(torch.ones(2)).tolist() == [5.0, 5.0]
"""


@unittest.skipIf(TORCHS is None, "torch is not installed, or has no Dynamo profiler")
class InTorchsPlace(ReportCase):
    def test_compilations_are_reported_once_and_kept_apart(self):
        command = [PYTHON, "-c", IN_PLACE, self.path("a.prof")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("=== Aggregate Timings (raw) ==="), 2, done.stdout)
        self.assertEqual(self.names(), ["a-2.prof", "a-2.svg", "a.prof", "a.svg"])
        found = table(pstats.Stats(self.path("a.prof")))
        self.assertEqual(
            {name: row[:2] for name, row in found.items()}, {"main": (1, 1), "factorial": (1, 4), "scale": (4, 4)}
        )
        self.assertEqual(found["factorial"][4]["factorial"][:2], (3, 1))
        whole = found["main"][3]
        self.assertEqual(sum(row[2] for row in found.values()), whole)
        self.assertEqual(set(table(pstats.Stats(self.path("a-2.prof")))), {"other", "scale"})


if __name__ == "__main__":
    unittest.main()
