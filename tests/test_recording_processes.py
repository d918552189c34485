"""Programs are recorded that fork, start others, call exec, and are killed."""

import os
import signal
import subprocess
import sys

import stackweave
from tests.recordings import RecordingCase, event_tuples
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

FORK = """
import os, sys, stackweave, warnings
warnings.simplefilter("ignore", DeprecationWarning)
recording = stackweave.Recorder(sys.argv[1], flush_every=1000, follow_forks=sys.argv[2] == "follow").start()
recording.instant("parent before", stack=False)
child = os.fork()
if child == 0:
    if sys.argv[3] != "silent":
        recording.instant("child", stack=False)
    if sys.argv[3] == "flush":
        recording.flush()
        os._exit(3)
    sys.exit(3)
_, status = os.waitpid(child, 0)
recording.instant("parent after", stack=False)
print(child, os.waitstatus_to_exitcode(status), recording.path)
"""

MULTIPROCESSING = """
import multiprocessing, os, sys, stackweave

def work(number):
    recording = current or stackweave.Recorder.from_environment()
    with recording.span(f"work {number}"):
        return os.getpid()

current = None
if __name__ == "__main__":
    multiprocessing.set_executable(os.environ["STACKWEAVE_TEST_PYTHON"])
    context = multiprocessing.get_context(sys.argv[2])
    recording = stackweave.Recorder(sys.argv[1], flush_every=1000, subprocesses=True).start()
    if sys.argv[2] == "fork":
        current = recording
    recording.instant("parent", stack=False)
    workers = [context.Process(target=work, args=(number,), name=f"worker {number}") for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(*(worker.exitcode for worker in workers))
"""

SUBPROCESS = """
import os, subprocess, sys, stackweave
script = '''
import stackweave
recording = stackweave.Recorder.from_environment()
if recording is None:
    print("does not record")
else:
    recording.instant("child", stack=False)
'''
recording = stackweave.Recorder(sys.argv[1], subprocesses=sys.argv[2] == "yes").start()
for environment in (None, dict(os.environ)):
    subprocess.run([os.environ["STACKWEAVE_TEST_PYTHON"], "-c", script], check=True, env=environment)
recording.stop()
assert "STACKWEAVE_RECORDING" not in os.environ
subprocess.run([os.environ["STACKWEAVE_TEST_PYTHON"], "-c", script], check=True)
"""

EXEC = """
import os, sys, stackweave, warnings
warnings.simplefilter("ignore", DeprecationWarning)
recording = stackweave.Recorder(sys.argv[1], flush_every=1000, ring=None if sys.argv[2] == "whole" else "1MB").start()
recording.instant("before", stack=False)
if sys.argv[2] == "forked":
    child = os.fork()
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.execv(sys.argv[3], [sys.argv[3], "-c", "print('another program')"])
"""

KILL = """
import os, signal, sys, stackweave
recording = stackweave.Recorder(sys.argv[1], flush_every=1000).start()
for number in range(1000):
    recording.begin("work")
    recording.end()
recording.flush()
recording.instant("lost", stack=False)
print("ready", flush=True)
signal.pause()
"""


def names_by_process(opened):
    """Returns the names of the events of each process, in the order in which the processes started."""
    processes = sorted(opened.info()["processes"], key=lambda process: process["started"])
    return [[e.name for e in opened.events(process=process["pid"]) if e.name] for process in processes]


class Forks(RecordingCase):
    def fork(self, *arguments):
        child, status, path = self.run_script(FORK, *arguments).split()
        self.assertEqual((int(status), path), (3, self.path), "statuses and paths stay as they were")
        return int(child)

    def test_a_child_records_to_a_file_of_its_own(self):
        for ending in ("exit", "flush"):
            with self.subTest(ending):
                child = self.fork("follow", ending)
                self.assertEqual(self.files(), [f"out.{child}.swv", "out.swv"])
                opened = stackweave.open(self.folder)
                self.assertEqual(names_by_process(opened), [["parent before", "parent after"], ["child"]])
                parent, forked = sorted(opened.info()["processes"], key=lambda process: process["started"])
                self.assertEqual(
                    (forked["pid"], forked["forked_from"], parent["forked_from"]), (child, parent["pid"], None)
                )
                self.assertEqual(parent["missing"], [])
                self.assertEqual(forked["threads"][0]["name"], "MainThread")
                if ending == "exit":
                    self.assertEqual(forked["missing"], [])
                else:
                    self.assertIn("not closed", forked["missing"][0])
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))

    def test_a_child_that_records_nothing_has_no_file(self):
        self.fork("follow", "silent")
        self.assertEqual(self.files(), ["out.swv"])
        self.assertEqual(stackweave.open(self.path).info()["missing"], [])

    def test_a_child_is_not_recorded_without_follow_forks(self):
        self.fork("alone", "exit")
        self.assertEqual(self.files(), ["out.swv"])
        self.assertEqual(names_by_process(stackweave.open(self.path)), [["parent before", "parent after"]])

    def test_forks_while_threads_record_do_not_block(self):
        script = """
import os, sys, threading, stackweave, warnings
warnings.simplefilter("ignore", DeprecationWarning)
def feed():
    while not finished:
        with recording.span("feed"):
            recording.counter("c", 1)
finished = []
with stackweave.Recorder(sys.argv[1]) as recording:
    threads = [threading.Thread(target=feed) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(8):
        child = os.fork()
        if child == 0:
            recording.instant("child", stack=False)
            recording.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    finished.append(True)
    for thread in threads:
        thread.join()
"""
        self.run_script(script)
        opened = stackweave.open(self.folder)
        children = [process for process in opened.info()["processes"] if process["forked_from"]]
        self.assertEqual([process["kinds"] for process in children], [{"instant": 1}] * 8)

    def test_a_child_of_a_ring_dumps_its_own(self):
        script = """
import os, sys, stackweave, warnings
warnings.simplefilter("ignore", DeprecationWarning)
recording = stackweave.Recorder(sys.argv[1], ring="1MB").start()
recording.instant("parent", stack=False)
child = os.fork()
if child == 0:
    recording.instant("child", stack=False)
    sys.exit()
os.waitpid(child, 0)
"""
        self.run_script(script)
        self.assertEqual(names_by_process(stackweave.open(self.folder)), [["parent"], ["child"]])


class Multiprocessing(RecordingCase):
    def test_workers_record_with_each_start_method(self):
        script = os.path.join(self.folder, "program.py")
        with open(script, "w") as file:
            file.write(MULTIPROCESSING)
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                done = subprocess.run(
                    [PYTHON, "-W", "ignore::DeprecationWarning", script, self.path, method],
                    capture_output=True,
                    text=True,
                    cwd=ROOT,
                    env={**os.environ, "STACKWEAVE_TEST_PYTHON": PYTHON},
                    timeout=120,
                )
                self.assertEqual((done.stdout, done.stderr), ("0 0\n", ""))
                opened = stackweave.open(self.folder)
                self.assertEqual(opened.info()["missing"], [])
                names = names_by_process(opened)
                self.assertEqual(names[0], ["parent"])
                self.assertEqual(sorted(names[1:]), [["work 0"], ["work 1"]])
                for name in self.files():
                    os.remove(os.path.join(self.folder, name))


class Programs(RecordingCase):
    def test_programs_record_with_the_option(self):
        shown = self.run_script(SUBPROCESS, "yes", STACKWEAVE_TEST_PYTHON=PYTHON)
        self.assertEqual(shown, "does not record\n", "the third starts when the recording has stopped")
        opened = stackweave.open(self.folder)
        self.assertEqual(names_by_process(opened), [[], ["child"], ["child"]])
        self.assertEqual(opened.info()["missing"], [])

    def test_programs_do_not_record_by_default(self):
        self.assertEqual(self.run_script(SUBPROCESS, "no", STACKWEAVE_TEST_PYTHON=PYTHON), "does not record\n" * 3)
        self.assertEqual(self.files(), ["out.swv"])

    def test_a_recording_is_written_before_exec(self):
        for mode in ("whole", "ring", "forked"):
            with self.subTest(mode):
                self.assertEqual(self.run_script(EXEC, mode, PYTHON), "another program\n")
                self.assertEqual(event_tuples(stackweave.open(self.path).events()), [("instant", "before")])
                os.remove(self.path)

    def test_a_recording_goes_on_if_exec_fails(self):
        with self.recording() as recorder:
            recorder.instant("before", stack=False)
            with self.assertRaises(FileNotFoundError):
                os.execv(os.path.join(self.folder, "no such program"), ["x"])
            recorder.instant("after", stack=False)
        self.assertEqual(event_tuples(recorder.recording.events()), [("instant", "before"), ("instant", "after")])

    def test_what_a_killed_program_has_flushed_is_there(self):
        process = subprocess.Popen([PYTHON, "-c", KILL, self.path], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        with process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.kill()
        self.assertEqual(process.returncode, -signal.SIGKILL)
        opened = stackweave.open(self.path)
        self.assertEqual(opened.info()["events"], 2000)
        self.assertEqual([event.role for event in opened.events()], ["begin", "end"] * 1000)
        self.assertEqual(len(opened.info()["missing"]), 1)
        self.assertIn("not closed: its program was killed", opened.info()["missing"][0])

    def test_the_process_is_described(self):
        with self.recording() as recorder:
            recorder.instant("x")
        process = recorder.recording.info()["processes"][0]
        self.assertEqual((process["pid"], process["parent"], process["path"]), (os.getpid(), os.getppid(), self.path))
        self.assertEqual((process["python"], process["host"]), (sys.version.split()[0], os.uname().nodename))
        self.assertEqual(process["stackweave"], stackweave.__version__)
        with open("/proc/self/cmdline") as file:
            self.assertEqual(process["command_line"], file.read().split("\0")[:-1])
        self.assertIn(process["clock"]["source"], ("tsc", "monotonic"))
        self.assertTrue(process["modules"])
        self.assertTrue(all(module["path"] for module in process["modules"]))
        self.assertLess(process["duration"], 60)
        self.assertEqual(process["started"].utcoffset().total_seconds(), 0)
