"""`stackweave stacks` prints stacks, or a sentence about why it can't."""

import os
import re
import subprocess
import sys
import time
import unittest

from tests.stacks_support import StacksCase, pid_of
from tests.support import ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

POOL = """
import sys, threading, time

started = threading.Semaphore(0)


def wait_for_work():
    started.release()
    time.sleep(600)


for _ in range(12):
    threading.Thread(target=wait_for_work, daemon=True).start()
for _ in range(12):
    started.acquire()
time.sleep(0.5)


def main():
    print("there", flush=True)
    sys.stdin.read(1)


main()
"""


class StacksCommandTest(StacksCase):
    def test_threads_at_one_place_are_shown_once(self):
        child = self.start(POOL)
        process = pid_of(child)
        text = self.text(process)
        head, main, pool = text.split("\n\n")
        self.assertIn(f"Process {process}: ", head)
        self.assertRegex(head, r"\nPython 3\.\d+\S*, 13 threads, most recent call first, stopped for [\d.]+ .?s$")
        self.assertIn(f'Thread {process} "MainThread", sleeping:\n', main)
        self.assertIn(f'  File "{self.folder}/program.py", line 21 in main\n', main)
        self.assertRegex(pool, r'^12 threads: (\d+ "Thread-\d+ \(wait_for_work\)",? ){6}and 6 more, sleeping:\n')
        # If the C library has no debug file, functions that it does not export have no names.
        frames = [line for line in pool.rstrip("\n").split("\n")[1:] if not line.startswith("  | libc.so.6+")]
        self.assertRegex(frames[0], r"^  \| \S*(nanosleep|select)\S* .*\[libc.so.6\]$")
        self.assertRegex(frames[1], r'^  File ".*/program.py", line 9 in wait_for_work$')
        self.assertEqual(len(frames), 2, pool)
        self.assertNotIn("\x1b", text)

    def test_all_frames_or_those_of_one_kind(self):
        child = self.start(POOL)
        process = pid_of(child)
        self.assertNotIn("Py_RunMain", self.text(process))
        self.assertIn("Py_RunMain", self.text(process, "--all"))
        python = self.text(process, "--python", "--all")
        self.assertNotIn("  | ", python)
        self.assertIn("in _bootstrap_inner" if sys.version_info < (3, 11) else "in Thread._bootstrap_inner", python)
        native = self.text(process, "--native", "--all")
        self.assertNotIn('  File "', native)
        self.assertIn("Py_RunMain", native)

    def test_threads_are_chosen_by_number_and_name(self):
        child = self.start(POOL)
        process = pid_of(child)
        threads = self.stacks(process)["threads"]
        self.assertEqual(threads[0]["tid"], process)
        number = threads[5]["tid"]
        self.assertEqual([thread["tid"] for thread in self.stacks(process, "--thread", number)["threads"]], [number])
        for key, wanted in [("name", "MainThread"), ("name", "Thread-3 (wait_for_work)"), ("kernel_name", None)]:
            wanted = wanted or threads[0][key]
            expected = [thread["tid"] for thread in threads if thread[key] == wanted]
            found = self.stacks(process, "--thread", wanted)["threads"]
            self.assertTrue(expected, wanted)
            self.assertEqual([thread["tid"] for thread in found], expected)
        done = self.run_command(process, "--thread", "no-such-name")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(
            done.stderr, f"stackweave: process {process} has no thread no-such-name; without --thread all are shown\n"
        )
        # The number of a thread selects its process, too.
        self.assertEqual(self.stacks(number)["process"], process)

    def test_unreadable_processes_are_reported_in_one_sentence(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        done = self.run_command(child.pid)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(
            done.stderr, f"stackweave: process {child.pid} has ended, and waits for its parent to notice\n"
        )
        child.wait()
        done = self.run_command(child.pid)
        self.assertEqual((done.returncode, done.stderr), (1, f"stackweave: there is no process {child.pid}\n"))
        self.assertEqual(self.run_command("nonsense").returncode, 2)

    def test_a_program_without_python_has_native_stacks(self):
        child = subprocess.Popen(["sleep", "600"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        text = self.text(child.pid, "--all")
        self.assertTrue(re.search(r"^  \| .*nanosleep.*\[libc\.so\.6\]$", text, re.MULTILINE), text)
        self.assertNotIn("Python", text)

    @unittest.skipUnless(sys.version_info[:2] == (3, 11), "the page shows what Python 3.11 does")
    def test_the_page_shows_what_is_written(self):
        with open(os.path.join(ROOT, "docs/reference/stacks.md")) as file:
            page = file.read()
        program = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
        shown = re.search(r"```console\n\$ stackweave stacks \d+\n(.*?)```", page, re.DOTALL).group(1)
        accounts = "checking, savings = Account(), Account()"
        child = self.start(program.replace(accounts, f"{accounts}; print('there', flush=True)"))
        # The threads take the last locks a moment later.
        for _ in range(20):
            found = self.plain(self.text(pid_of(child)).replace("program.py", "bank.py"))
            if found == self.plain(shown):
                break
            time.sleep(0.5)
        self.assertEqual(found, self.plain(shown))

    @staticmethod
    def plain(text):
        """Returns headings and Python frames, without what differs between runs and machines."""
        lines = (line for line in text.splitlines()[1:] if not line.startswith("  |"))
        lines = (re.sub(r'\b\d+(?= ")|3\.11\.\d+|[\d.]+ .?s$', "N", line) for line in lines)
        lines = (re.sub(r'"/[^"]*/', '"', line) for line in lines)
        return [re.sub(r'(thread\w*\.py", line) \d+', r"\1 N", line) for line in lines]


if __name__ == "__main__":
    unittest.main()
