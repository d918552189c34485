"""Python's warning about forks in processes with threads: a recorded program gets it exactly when a plain one does."""

import os
import subprocess
import sys
import tempfile
import unittest

#: Prints the number of warnings of forks in a process with one thread, in its child, and with two threads.
PROGRAM = """
import os, sys, threading, warnings
def fork(inside):
    with warnings.catch_warnings(record=True) as seen:
        pid = os.fork()
    if pid == 0:
        inside()
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
    print(sum("multi-threaded" in str(each.message) for each in seen), flush=True)
fork(lambda: fork(lambda: None))
end = threading.Event()
thread = threading.Thread(target=end.wait)
thread.start()
fork(lambda: fork(lambda: None))
end.set()
thread.join()
"""


class ForkWarning(unittest.TestCase):
    def run_program(self, *before):
        run = subprocess.run(
            [sys.executable, "-W", "always", *before, "-c", PROGRAM], capture_output=True, text=True, timeout=240
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_commands_change_no_warning(self):
        plain = self.run_program()
        for command in ("trace", "memory", "record"):
            with self.subTest(command), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "out.swv")
                self.assertEqual(self.run_program("-m", "stackweave", command, "-q", "-o", path), plain)

    def test_filters_of_warnings_stay_as_they_are(self):
        code = """
import os, sys, warnings, stackweave
def fork():
    before = list(warnings.filters)
    pid = os.fork()
    assert list(warnings.filters) == before, warnings.filters
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
with stackweave.trace(sys.argv[1]):
    fork()
    warnings.simplefilter("error")
    fork()
    warnings.filters = tuple(warnings.filters)
    fork()
fork()
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=240)
            self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
