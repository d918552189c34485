"""The magics run cells in IPython, show results, and record."""

import html
import importlib.util
import json
import os
import re
import subprocess
import unittest

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest, run_python

setUpModule = run_on_oldest_and_newest

TOOLS = os.environ.get("STACKWEAVE_TEST_TOOLS", "")
HAS_IPYTHON = bool(TOOLS) or importlib.util.find_spec("IPython") is not None
#: A shell that runs cells, and prints what they display as JSON, as a notebook receives it.
BEGIN = """
import io, json, os, sys, warnings
warnings.simplefilter("ignore")
from contextlib import redirect_stdout
try:
    from IPython.core.interactiveshell import InteractiveShell
except Exception as error:
    print("no IPython:", type(error).__name__)
    raise SystemExit
from IPython.core.displaypub import DisplayPublisher
import stackweave

class Collected(DisplayPublisher):
    def publish(self, data, metadata=None, **others):
        shown.append(data)

shown = []
shell = InteractiveShell.instance()
shell.history_manager.enabled = False
shell.display_pub = Collected()
shell.run_line_magic("load_ext", "stackweave")

def cell(text):
    shown.clear()
    written = io.StringIO()
    with redirect_stdout(written):
        result = shell.run_cell(text, store_history=True)
    return result, written.getvalue()

def in_notebook():
    shell.kernel = object()
"""


@unittest.skipUnless(HAS_IPYTHON, "IPython is not installed")
class Notebook(RecordingCase):
    def shell(self, code, **environment):
        search = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), TOOLS]))
        done = subprocess.run(
            [PYTHON, "-c", BEGIN + code],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": search, "IPYTHONDIR": self.folder, "NO_COLOR": "1", **environment},
            timeout=120,
        )
        if done.stdout.startswith("no IPython"):
            self.skipTest(f"IPython does not work on this Python: {done.stdout.strip()}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return re.sub(r"\x1b\[[\d;]*m", "", done.stdout)

    def test_a_cell_runs_as_always_and_is_recorded(self):
        shown = self.shell(
            f"""
cell("def work(number):\\n    return sum(range(number))")
result, text = cell("%%trace -o {self.path}\\nkept = [work(10) for _ in range(5)]\\nlen(kept)")
print(result.result, shell.user_ns["kept"], shell.user_ns["_"], result.error_in_exec)
print(text)
"""
        )
        self.assertTrue(shown.startswith("5 [45, 45, 45, 45, 45] 5 None\n"), shown)
        self.assertRegex(shown, r"(?m)^Out\[2\]: 5$")
        self.assertRegex(shown, rf"(?m)^\d+ calls in \d+ ms, recorded in {re.escape(self.path)}$")
        self.assertRegex(shown, r"(?m) +5  work  In \[1\]:1$")
        calls = {row.name: row.calls for row in stackweave.open(self.path).top()}
        self.assertEqual(calls["work"], 5)
        self.assertFalse(
            {name for name in calls if "run_cell" in name or "run_code" in name},
            "the functions that run the cell are not recorded",
        )

    def test_a_semicolon_and_settings_say_what_is_shown(self):
        shown = self.shell(
            """
print(cell("%%trace -q\\n1 + 1;")[1])
shell.ast_node_interactivity = "all"
print(cell("%%trace -q\\n2 + 1\\n3 + 1")[1])
shell.ast_node_interactivity = "last_expr_or_assign"
print(cell("%%trace -q\\nx = 21 + 1")[1])
shell.ast_node_interactivity = "none"
print(cell("%%trace -q\\n31 + 1")[1])
"""
        )
        self.assertEqual(re.findall(r"Out\[\d\]: (\d+)", shown), ["3", "4", "22"])

    def test_exceptions_are_shown_as_always(self):
        shown = self.shell(
            """
result, text = cell("%%trace\\ndef fail():\\n    raise LookupError('gone')\\nfail()")
print(type(result.error_in_exec).__name__)
print(text)
result, text = cell("%%memory\\nfor each in")
print(result.success, text)
result, text = cell("%%memory\\nprint(")
print(result.success, text)
"""
        )
        self.assertTrue(shown.startswith("LookupError\n"), shown)
        self.assertRegex(shown, r"(?s)\d+ calls in .*LookupError +Traceback .*line 3.*LookupError: gone")
        self.assertRegex(shown, r"(?s)False .*for each in.*SyntaxError: invalid syntax")
        unfinished = r"(SyntaxError|_IncompleteInputError): (incomplete input|unexpected EOF|'\(' was)"
        self.assertRegex(shown, rf"(?s)False .*print\(.*{unfinished}")
        for ours in ("_notebook", "_entrance", "run_cell_magic"):
            self.assertNotIn(ours, shown)

    def test_an_interrupt_leaves_a_recording(self):
        shown = self.shell(
            f"""
import _thread, threading
result, text = cell('''%%trace -o {self.path}
def work():
    import _thread
    _thread.interrupt_main()
    while True:
        pass
work()''')
print(type(result.error_in_exec).__name__, "work" in text, "KeyboardInterrupt" in text)
"""
        )
        self.assertEqual(shown, "KeyboardInterrupt True True\n")
        self.assertIn("work", [row.name for row in stackweave.open(self.path).top()])

    def test_a_statement(self):
        shown = self.shell(
            """
cell("def work(number):\\n    return sum(range(number))")
cell("found = %trace --c-calls --exclude 'module:json' work(10)")
print(shell.user_ns["found"])
print(cell("%memory big = bytearray(5_000_000)")[1])
print(len(shell.user_ns["big"]))
"""
        )
        self.assertTrue(shown.startswith("45\n"), shown)
        self.assertRegex(shown, r"4\.7\d MiB at the peak\npeak: 4\.7\d MiB in \d+ blocks?")
        self.assertTrue(shown.endswith("5000000\n"), shown)

    def test_a_cell_that_awaits(self):
        shown = self.shell(
            f"""
result, text = cell('''%%record -o {self.path}
import asyncio
async def wait(seconds):
    await asyncio.sleep(seconds)
    return seconds
await wait(0.01)''')
print(result.result, result.error_in_exec)
"""
        )
        self.assertEqual(shown, "0.01 None\n")
        self.assertIn("wait", [row.name for row in stackweave.open(self.path).top(measure="time")])

    def test_memory_begins_in_the_cell(self):
        self.shell(
            f"""
result, text = cell('''%%memory -o {self.path}
def take():
    return bytearray(9_000_000)
held = take()''')
assert result.success, text
"""
        )
        node = stackweave.open(self.path).tree(measure="peak")
        names = []
        while node.children:
            node = max(node.children, key=lambda each: each.total)
            names.append(node.name)
        self.assertEqual(names[:2], ["<module>", "take"])

    def test_a_notebook_gets_the_page_and_a_table(self):
        shown = self.shell(
            """
in_notebook()
cell("def work(number):\\n    return sum(range(number))")
cell("%%trace --height 432\\nwork(100)")
print(json.dumps(shown))
"""
        )
        (bundle,) = json.loads(shown)
        self.assertRegex(bundle["text/plain"], r"1  work  In \[1\]:1")
        frame = re.search(r'<iframe srcdoc="([^"]*)"([^>]*)>', bundle["text/html"])
        self.assertIn('sandbox="allow-scripts allow-downloads"', frame.group(2))
        self.assertIn("height: 432px", frame.group(2))
        page = html.unescape(frame.group(1))
        self.assertTrue(page.startswith("<!doctype html>"), page[:100])
        self.assertIn('id="sw-head"', page)

    def test_a_large_page_goes_to_a_file(self):
        for name, content in (("mine.html", "mine"), ("kept.html", "<title>Stackweave report</title>")):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(content)
        shown = self.shell(
            """
in_notebook()
cell("%%trace --max-size 100kB\\nsorted(range(100), key=lambda each: -each)")
print(json.dumps(shown))
cell("%%trace --max-size 100kB -o kept.swv\\n1")
print(json.dumps(shown))
cell("%%trace --max-size 100kB -o ~/mine.swv\\n1")
print(json.dumps(shown))
""",
            HOME=self.folder,
        )
        first, second, third = map(json.loads, shown.splitlines())
        self.assertRegex(first[0]["text/html"], r'<a href="stackweave-In1\.html" target="_blank">Open stackweave-In1')
        self.assertIn("too large for a notebook", first[0]["text/html"])
        self.assertIn("kept.html", second[0]["text/html"])
        self.assertIn(os.path.join(self.folder, "mine-2.html"), third[0]["text/html"])
        self.assertEqual(
            {name for name in os.listdir(self.folder) if name.endswith((".html", ".swv"))},
            {"stackweave-In1.html", "kept.html", "kept.swv", "mine.html", "mine-2.html", "mine.swv"},
        )
        with open(os.path.join(self.folder, "mine.html")) as file:
            self.assertEqual(file.read(), "mine", "only a report is replaced")
        self.assertGreater(os.path.getsize(os.path.join(self.folder, "kept.html")), 100_000)

    def test_recordings_can_be_shown_again(self):
        with stackweave.trace(self.path):
            sorted(range(10), key=lambda each: -each)
        shown = self.shell(
            f"""
print(cell("%stackweave_report --top {self.path}")[1])
stackweave.open({self.path!r}).show()
in_notebook()
stackweave.open({self.path!r}).show(height=300)
print(sorted(shown[-1]), "height: 300px" in shown[-1]["text/html"])
"""
        )
        self.assertEqual(len(re.findall(r" 10  \S*<lambda>", shown)), 2, shown)
        self.assertTrue(shown.endswith("['text/html', 'text/plain'] True\n"), shown)

    def test_wrong_options_are_one_sentence(self):
        with open(os.path.join(self.folder, "notes.txt"), "w") as file:
            file.write("mine")
        lines = [
            "%%trace --colour",
            "%%trace work()",
            "%%memory --depth x",
            "%%trace -o notes.txt",
            "%%trace --max-size 3q",
            "%%trace --live",
            "%%memory --mode sampled --sample-every much",
            "%%trace -o missing/out.swv",
        ]
        shown = self.shell(
            f"""
import contextlib
for line in {lines!r}:
    with contextlib.redirect_stderr(sys.stdout):
        result, text = cell(line + "\\nprint('it ran')")
        print(text.strip())
with contextlib.redirect_stderr(sys.stdout):
    with stackweave.trace({self.path!r}):
        print(cell("%trace 1 + 1")[1].strip())
    print(cell("%trace")[1].strip())
    print(cell("%stackweave_report nothing.swv")[1].strip())
"""
        )
        self.assertNotIn("it ran", shown)
        shown_lines = list(filter(None, shown.splitlines()))
        self.assertEqual(len(shown_lines), len(lines) + 3, shown)
        for sentence, words in zip(
            shown_lines,
            [
                "--colour",
                "what is 'work()' in its line",
                "--depth",
                "notes.txt exists and is not a recording",
                "--max-size",
                "--live",
                "--sample-every must be a size",
                "missing/out.swv: its folder does not exist",
                "is on, and there can be one trace at a time",
                "records the statement after it",
                "nothing.swv",
            ],
        ):
            self.assertRegex(sentence, r"^UsageError: ")
            self.assertIn(words, sentence)
        with open(os.path.join(self.folder, "notes.txt")) as file:
            self.assertEqual(file.read(), "mine")

    def test_it_can_be_unloaded(self):
        shown = self.shell(
            """
print("trace" in shell.magics_manager.magics["cell"])
shell.run_line_magic("unload_ext", "stackweave")
print("trace" in shell.magics_manager.magics["cell"], "stackweave_report" in shell.magics_manager.magics["line"])
"""
        )
        self.assertEqual(shown, "True\nFalse False\n")

    def test_the_cells_of_the_page_run_and_show_what_it_says(self):
        with open(os.path.join(ROOT, "docs", "how-to", "jupyter.md"), encoding="utf-8") as file:
            text = file.read()
        cells = re.findall(r"```ipython\n(.*?)```", text, re.DOTALL)
        self.assertGreaterEqual(len(cells), 4)
        shown = self.shell(
            f"""
for text in {cells!r}:
    result, written = cell(text)
    assert result.success, written
print(written)
"""
        )
        expected = re.search(r"```text\n(.*?)```", text, re.DOTALL).group(1)

        def functions(table):
            # These names are the same in all Pythons. Comprehensions are functions before 3.12.
            found = re.findall(r"(?m)  (?:\S+\.)?(\S+  In \[\d+\]:\d+)$", table)
            return {name for name in found if not name.startswith("<listcomp>")}

        self.assertEqual(functions(shown), functions(expected))
        self.assertTrue(functions(shown))


class WithoutNotebook(unittest.TestCase):
    def test_nothing_of_it_is_imported(self):
        modules = run_python("import sys, stackweave; print([name for name in sys.modules if 'otebook' in name])")
        self.assertEqual(modules, "[]\n")
        self.assertNotIn("IPython", run_python("import sys, stackweave; print(list(sys.modules))"))

    def test_a_recording_shows_a_table_elsewhere(self):
        shown = run_python(
            """
import os, stackweave, tempfile
with tempfile.TemporaryDirectory() as folder:
    with stackweave.trace(os.path.join(folder, "a.swv")) as trace:
        sorted([2, 1], key=lambda each: each)
    trace.recording.show()
"""
        )
        self.assertRegex(
            shown, r"(?m)^\d+ calls in \d+ ms\n +self +total +calls  function\n(.*\n)* +[\d.]+ .* 2  <lambda>"
        )
