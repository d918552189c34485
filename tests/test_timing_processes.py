"""Phases are recorded in forked children, and in programs that a recorded program starts."""

import subprocess
import unittest
from collections import Counter

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest
from tests.timing_support import LEFT, START, event_tuples

setUpModule = run_on_oldest_and_newest


class Forks(RecordingCase):
    CHILD = """
timing.push("before")
child = os.fork()
timing.push("child" if child == 0 else "parent")
timing.pop()
timing.pop()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
"""

    def test_a_child_goes_on_in_a_file_of_its_own(self):
        self.run_script(START + self.CHILD, PYTHONWARNINGS="ignore")
        self.assertEqual(len(self.files()), 2)
        opened = stackweave.open(self.folder)
        kinds = {process["pid"]: Counter() for process in opened.info()["processes"]}
        for event in opened.events():
            kinds[event.process][event.kind, event.name] += 1
        ends = {("end", None): 2}
        self.assertCountEqual(
            [dict(counted) for counted in kinds.values()],
            [
                {("begin", "before"): 1, ("begin", "parent"): 1, **ends},
                {("still-open", "before"): 1, ("begin", "child"): 1, **ends},
            ],
        )

    def test_a_child_that_is_not_followed_leaves_nothing(self):
        script = self.CHILD.replace("\nos.waitpid", "\nassert os.waitpid(child, 0)[1] == 0 #")
        self.run_script(START.replace("argv[1])", "argv[1], follow_forks=False)") + script, PYTHONWARNINGS="ignore")
        self.assertEqual(self.files(), ["out.swv"])
        self.assertEqual({event.name for event in stackweave.open(self.path).events()} - {None}, {"before", "parent"})

    def test_a_child_of_a_program_with_a_temporary_file(self):
        script = """
child = os.fork()
if child == 0:
    timing.push("in the child")
    timing.pop()
    assert timing.problems() == (0, 0, 0, 0)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
timing.push("in the parent")
timing.pop()
timing.stop()
print([event.name for event in timing.recording.events()], left())
"""
        script = START.replace("sys.argv[1]", "") + LEFT + script
        self.assertEqual(
            self.run_script(script, TMPDIR=self.folder, PYTHONWARNINGS="ignore"), "['in the parent', None] []\n"
        )

    def test_a_given_clock_goes_on_in_a_child(self):
        script = """
timing.stop()
now = [1000]
timing = stackweave.Timing(sys.argv[1], overwrite=True, clock=lambda: now[0])
timing.push("around")
now[0] += 70
child = os.fork()
timing.push("child" if child == 0 else "parent")
now[0] += 5 if child == 0 else 300
timing.pop()
timing.pop()
timing.stop()
if child:
    os.waitpid(child, 0)
"""
        self.run_script(START + script, PYTHONWARNINGS="ignore")
        rows = {key[2]: round(row[3] * 1e9) for key, row in stackweave.open(self.folder).stats().stats.items()}
        self.assertEqual(rows, {"around": 370 + 5, "parent": 300, "child": 5})

    def test_phases_of_other_threads_are_not_open_in_a_child(self):
        script = """
begun, finished = threading.Event(), threading.Event()
def other():
    timing.push("elsewhere")
    begun.set()
    finished.wait(60)
    timing.pop()
thread = threading.Thread(target=other)
thread.start()
begun.wait(60)
timing.push("here")
child = os.fork()
if child == 0:
    assert timing.problems().still_open == 1, timing.problems()
    timing.pop()
    assert timing.problems().still_open == 0, timing.problems()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
finished.set()
thread.join()
timing.pop()
assert not timing.problems(), timing.problems()
"""
        # Since 3.12, Python warns of a fork while there are threads.
        self.run_script(START + script, PYTHONWARNINGS="ignore")


class Programs(RecordingCase):
    def test_a_program_that_a_recorded_program_starts(self):
        script = """
import stackweave
timing = stackweave.Timing.from_environment()
with timing.phase("in another program"):
    pass
timing.stop()
"""
        self.assertIsNone(stackweave.Timing.from_environment())
        with stackweave.Recorder(self.path, subprocesses=True):
            subprocess.run([PYTHON, "-c", script], check=True, cwd=ROOT, timeout=120)
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(event_tuples(stackweave.open(self.folder)), [("begin", "in another program"), ("end",)])


if __name__ == "__main__":
    unittest.main()
