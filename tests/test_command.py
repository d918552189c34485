"""The command of the package: python -m stackweave."""

import json
import os
import pty
import subprocess

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest


class Command(RecordingCase):
    def command(self, *arguments, status=0):
        done = subprocess.run(
            [PYTHON, "-m", "stackweave", *arguments], capture_output=True, text=True, cwd=self.folder, timeout=60
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, ROOT)
        with self.recording() as recording, recording.span("outer"), recording.span("inner"):
            pass

    def test_a_recording_is_shown(self):
        tree, message = self.command("tree", "--min", "0", "out.swv")
        self.assertLess(tree.index("outer"), tree.index("inner"))
        self.assertEqual(message, "")
        info = json.loads(self.command("info", "--json", "out.swv")[0])
        self.assertEqual([process["pid"] for process in info["processes"]], [os.getpid()])

    def test_names_of_files_may_be_any_bytes(self):
        odd = os.fsencode(self.folder) + b"/\xff odd.swv"
        os.rename(self.path, odd)
        info = json.loads(self.command("info", "--json", os.fsdecode(odd))[0])
        self.assertEqual([process["pid"] for process in info["processes"]], [os.getpid()])

    def test_failures_are_reported_in_one_sentence_and_a_status(self):
        message = self.command("tree", "gone.swv", status=1)[1]
        self.assertRegex(message, r"\Astackweave: .*gone\.swv.*\n\Z")
        message = self.command("paint", status=2)[1]
        self.assertEqual(message, "stackweave: there is no command paint; see stackweave --help\n")
        self.assertIn("merge", self.command("--help")[0])

    def test_closed_standard_streams_do_not_change_what_is_written(self):
        self.command("export", "out.swv", "-o", "open.jsonl")

        def closed(*arguments):
            command = [PYTHON, "-m", "stackweave", *arguments]
            line = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command]
            return subprocess.run(line, cwd=self.folder, timeout=60, check=False).returncode

        self.assertEqual(closed("export", "out.swv", "-o", "closed.jsonl"), 0)
        texts = []
        for name in ("open.jsonl", "closed.jsonl"):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(closed("info", "out.swv"), 0)
        self.assertEqual(closed("export", "out.swv", "--format", "folded", "-o", "-"), 1)

    def test_json_is_read_by_python(self):
        top = json.loads(self.command("top", "--json", "--measure", "calls", "out.swv")[0])
        self.assertEqual([(row["name"], row["self"]) for row in top["functions"]], [("outer", 1), ("inner", 1)])
        tree = json.loads(self.command("tree", "--json", "--min", "0", "out.swv")[0])
        self.assertEqual(tree["children"][0]["children"][0]["name"], "inner")
        flame = json.loads(self.command("flame", "--json", "--measure", "calls", "out.swv")[0])
        self.assertEqual((flame["name"], flame["value"], flame["children"][0]["name"]), ("all", 2, "outer"))
        diff = json.loads(self.command("diff", "--json", "--measure", "calls", "out.swv", "out.swv")[0])
        self.assertEqual((diff["selected"]["ratio"], diff["functions"], diff["remarks"]), (1.0, [], []))

    def test_json_of_deep_recursion_is_not_too_deep_for_python(self):
        with stackweave.Recorder(os.path.join(self.folder, "deep.swv")) as recording:
            for _ in range(600):
                recording.begin("again")
            for _ in range(600):
                recording.end()
        # By calls: after a pause of this process, only the outer levels may be long enough to be listed.
        for view in ("tree", "flame"):
            levels, node = 0, json.loads(self.command(view, "--json", "--measure", "calls", "deep.swv")[0])
            while "children" in node:
                levels, node = levels + 1, node["children"][0]
            self.assertEqual(levels, 400)

    def test_a_gate_has_a_status_of_its_own(self):
        with stackweave.Recorder(os.path.join(self.folder, "more.swv")) as recording:
            for _ in range(3):
                with recording.span("outer"):
                    pass
        message = self.command("diff", "--measure", "calls", "--fail-above", "10", "out.swv", "more.swv", status=3)[1]
        self.assertIn("calls grew by 50.0 %, from 2 to 3", message)
        self.command("diff", "--measure", "calls", "--fail-above", "50", "out.swv", "more.swv")

    def test_the_installed_command_is_in_no_stack(self):
        # This is the script that installers write. It is not a file of the package.
        script = os.path.join(self.folder, "bin", "stackweave")
        program = os.path.join(self.folder, "program.py")
        os.mkdir(os.path.dirname(script))
        with open(script, "w") as file:
            file.write(
                "import sys\nfrom stackweave.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
            )
        with open(program, "w") as file:
            file.write("def work():\n    return bytearray(1_000_000)\nkept = work()\n")
        for kind in ("memory", "trace", "record"):
            path = os.path.join(self.folder, f"{kind}.swv")
            subprocess.run([PYTHON, script, kind, "-q", "-o", path, program], check=True, cwd=self.folder)
            views = [["tree"], ["top"], ["flame"]] + ([["heap", "--view", "peak"]] if kind != "trace" else [])
            for view in views:
                done = subprocess.run([PYTHON, script, *view, path], capture_output=True, text=True, check=True)
                self.assertIn("work", done.stdout, (kind, view))
                self.assertNotRegex(done.stdout, r"stackweave:\d", (kind, view))

    def test_help_is_that_of_the_command(self):
        for name in ("trace", "memory", "dynamo", "top", "flame"):
            text = self.command("help", name)[0]
            self.assertEqual(text, self.command(name, "--help")[0])
            self.assertIn("Examples:", text)
        self.assertEqual(self.command()[0], self.command("--help")[0])

    def test_a_terminal_has_colours(self):
        self.assertIn("\x1b[48;2;", self.on_a_terminal("flame", "out.swv"))
        self.assertIn("\x1b[1m", self.on_a_terminal("tree", "out.swv"))
        self.assertNotIn("\x1b", self.on_a_terminal("flame", "out.swv", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_a_terminal("tree", "--color", "never", "out.swv"))

    def on_a_terminal(self, *arguments, **variables):
        """Returns what the command prints on a terminal."""
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **variables}
        for name in ("NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
            if name not in variables:
                environment.pop(name, None)
        ours, terminal_end = pty.openpty()
        with open(ours, "rb", buffering=0) as shown:
            with open(terminal_end, "wb") as terminal:
                command = [PYTHON, "-m", "stackweave", *arguments]
                done = subprocess.run(command, stdout=terminal, cwd=self.folder, env=environment, timeout=60)
            self.assertEqual(done.returncode, 0)
            text = b""
            while True:
                try:
                    more = shown.read(65536)
                except OSError:
                    more = b""
                if not more:
                    return text.decode()
                text += more
