"""A recording and its program survive failures."""

import gzip
import itertools
import os
import signal
import subprocess
import sys
import unittest

import stackweave
from tests.recordings import RecordingCase, event_tuples
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest

START = "import sys, threading, stackweave\nrecording = stackweave.Recorder(sys.argv[1]).start()\n"


#: A pipe without a reader blocks the writer. If a recording thread waited with the GIL, this would never end.
FULL_BUFFER = """
import os, sys, threading, time, stackweave
def feed():
    for number in range(3_000_000):
        recording.counter(f"a name that needs space {number}", number * 1.7)
        if finished:
            break
def drain_while(thread):
    while thread.is_alive():
        try:
            os.read(reader, 1 << 20)
        except BlockingIOError:
            thread.join(0.001)
finished = []
reader = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
recording = stackweave.Recorder(sys.argv[1], buffer=1, overwrite=True).start()
feeding = threading.Thread(target=feed)
feeding.start()
for _ in range(100):
    time.sleep(0.001)
print("waits" if feeding.is_alive() else "is done")
finished.append(True)
drain_while(feeding)
stopping = threading.Thread(target=recording.stop)
stopping.start()
drain_while(stopping)
"""


class Exceptions(RecordingCase):
    def only_instant(self):
        opened = stackweave.open(self.path)
        self.assertEqual(opened.info()["missing"], [])
        (event,) = opened.events()
        self.assertEqual((event.role, event.name), ("instant", "unhandled exception"))
        return event.details

    def test_an_unhandled_exception_is_recorded(self):
        script = START + "def fail():\n    raise KeyError('what')\nfail()\n"
        self.run_script(script, status=1, stderr="Traceback .*KeyError: 'what'\n")
        self.assertEqual(self.only_instant(), {"type": "builtins.KeyError", "message": "'what'", "where": "<string>:4"})

    def test_an_exception_in_a_thread_is_recorded(self):
        script = START + "t = threading.Thread(target=int, args=('x',), name='bad')\nt.start(); t.join()\n"
        self.run_script(script, stderr="Exception in thread bad:.*ValueError: .*\n")
        self.assertEqual(self.only_instant()["type"], "builtins.ValueError")

    def test_the_hooks_of_the_program_still_run(self):
        script = """
import sys, threading, stackweave
sys.excepthook = lambda kind, error, traceback: print("mine", kind.__name__)
threading.excepthook = lambda args: print("my thread's", args.exc_type.__name__)
before = sys.excepthook, threading.excepthook
with stackweave.Recorder(sys.argv[1]) as recording:
    assert (sys.excepthook, threading.excepthook) != before
assert (sys.excepthook, threading.excepthook) == before
one = stackweave.Recorder(sys.argv[1], overwrite=True).start()
two = stackweave.Recorder(sys.argv[1] + "2").start()
one.stop()
t = threading.Thread(target=int, args=("x",)); t.start(); t.join()
sys.excepthook = lambda *args, wrapped=sys.excepthook: (print("over it"), wrapped(*args))
two.stop()
1 / 0
"""
        shown = self.run_script(script, status=1)
        self.assertEqual(shown, "my thread's ValueError\nover it\nmine ZeroDivisionError\n")

    def test_exits_are_no_exceptions(self):
        self.run_script(START + "sys.exit(7)\n", status=7)
        self.assertEqual(list(stackweave.open(self.path).events()), [])
        os.remove(self.path)
        self.run_script(START + "sys.exit('words')\n", status=1, stderr="words\n")
        os.remove(self.path)
        self.run_script(
            START + "raise KeyboardInterrupt\n", status=-signal.SIGINT, stderr="Traceback.*KeyboardInterrupt\n"
        )
        self.assertEqual(list(stackweave.open(self.path).events()), [])

    def test_an_exception_that_leaves_the_block_is_recorded(self):
        with self.assertRaises(ZeroDivisionError):
            with self.recording():
                1 / 0
        self.assertEqual(self.only_instant()["type"], "builtins.ZeroDivisionError")


class Rings(RecordingCase):
    def test_only_the_last_events_are_kept(self):
        with self.recording(ring="64KB") as recorder:
            for number in range(200_000):
                recorder.counter("n", number)
        summary = recorder.stop()
        values = [event.values["value"] for event in recorder.recording.events()]
        self.assertEqual(values, [float(number) for number in range(200_000 - len(values), 200_000)])
        self.assertEqual(summary.events, len(values))
        self.assertLess(len(values), 200_000)
        self.assertGreater(len(values), 1000)
        self.assertTrue(recorder.recording.info()["processes"][0]["ring"])

    def test_a_ring_is_dumped_on_request(self):
        with self.recording(ring=3600, dump_on=()) as recorder:
            recorder.instant("one", stack=False)
            other = os.path.join(self.folder, "dump.swv")
            self.assertEqual(recorder.dump(other), other)
            self.assertEqual(self.files(), ["dump.swv"])
            recorder.instant("two", stack=False)
            self.assertEqual(recorder.dump(), self.path)
            recorder.instant("three", stack=False)
        self.assertEqual(event_tuples(stackweave.open(other).events()), [("instant", "one")])
        self.assertEqual(event_tuples(recorder.recording.events()), [("instant", "one"), ("instant", "two")])

    def test_a_ring_that_is_not_dumped_leaves_no_file(self):
        with self.recording(ring="1MB", dump_on=()) as recorder:
            recorder.instant("x")
        self.assertEqual(self.files(), [])
        with self.assertRaisesRegex(stackweave.RecordingError, "out.swv"):
            recorder.recording.info()

    def test_only_a_ring_can_be_dumped(self):
        with self.recording() as recording:
            with self.assertRaisesRegex(stackweave.StateError, "only a recording in ring mode can be dumped"):
                recording.dump()

    def test_a_ring_is_dumped_when_an_exception_is_not_handled(self):
        script = """
import os, sys, threading, stackweave
recording = stackweave.Recorder(sys.argv[1], ring=60, dump_on=["exception"]).start()
recording.instant("before", stack=False)
thread = threading.Thread(target=int, args=("x",))
thread.start()
thread.join()
assert os.path.exists(sys.argv[1])
recording.instant("after", stack=False)
"""
        self.run_script(script, stderr="Exception in thread .*")
        names = [event.name for event in stackweave.open(self.path).events()]
        self.assertEqual(names, ["before", "unhandled exception"])

    def test_a_ring_is_dumped_at_the_end_of_the_program(self):
        script = "import sys, stackweave\nstackweave.Recorder(sys.argv[1], ring=60).start().instant('x', stack=False)"
        self.run_script(script)
        self.assertEqual(event_tuples(stackweave.open(self.path).events()), [("instant", "x")])


class Ends(RecordingCase):
    def test_a_recording_that_is_not_stopped_is_complete(self):
        script = START + "recording.begin('x')\nimport atexit\natexit.register(recording.end)\n"
        self.run_script(script)
        opened = stackweave.open(self.path)
        self.assertEqual(event_tuples(opened.events()), [("begin", "x"), ("end",)])
        self.assertEqual(opened.info()["missing"], [])

    def test_code_that_runs_at_the_very_end_may_feed_it(self):
        script = (
            "import atexit\natexit.register(lambda: recording.instant('too late'))\n"
            + START
            + """
class Last:
    def __del__(self, recording=recording):
        recording.instant("too late")
        with recording.span("too late"):
            recording.counter("too late", 1)
last = Last()
recording.instant("x", stack=False)
"""
        )
        self.run_script(script)
        self.assertEqual(event_tuples(stackweave.open(self.path).events()), [("instant", "x")])

    def test_daemon_threads_may_record_until_the_end(self):
        script = (
            START
            + """
def feed():
    while True:
        with recording.span("feed", turn=1):
            recording.instant("here")
            started.set()
started = threading.Event()
for _ in range(4):
    threading.Thread(target=feed, daemon=True).start()
started.wait()
"""
        )
        for _ in range(5):
            self.run_script(script)
            opened = stackweave.open(self.path)
            self.assertEqual(opened.info()["missing"], [])
            self.assertGreater(opened.info()["events"], 0)
            os.remove(self.path)

    def test_a_thread_that_waits_for_the_writer_lets_others_run(self):
        os.mkfifo(self.path)
        self.assertEqual(self.run_script(FULL_BUFFER), "waits\n")


class FullDisks(RecordingCase):
    def test_a_file_that_can_not_grow_is_reported_and_readable(self):
        script = """
import resource, sys, warnings, stackweave
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
recording = stackweave.Recorder(sys.argv[1], flush_every=0.01).start()
for number in range(300_000):
    recording.counter("n", number * 1.1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    summary = recording.stop()
(warning,) = caught
assert "is incomplete" in str(warning.message) and "could not be written" in str(warning.message), warning
assert summary.error and sum(summary.lost.values()) > 0, summary
assert recording.stop() is summary
print(summary.events, sum(summary.lost.values()))
"""
        written, lost = map(int, self.run_script(script).split())
        opened = stackweave.open(self.path)
        values = [event.values["value"] for event in opened.events()]
        self.assertEqual((len(values), written + lost), (written, 300_000))
        self.assertTrue(all(before < after for before, after in itertools.pairwise(values)))
        self.assertTrue({number * 1.1 for number in range(300_000)}.issuperset(values))
        self.assertTrue(opened.info()["missing"])

    def test_a_program_that_closes_all_files_gets_no_events_in_its_own(self):
        script = """
import os, sys
import stackweave
recording = stackweave.Recorder(sys.argv[1], flush_every=0.001).start()
for _ in range(1000):
    recording.instant("before", stack=False)
recording.flush()
os.closerange(3, 2000)
with open(sys.argv[1] + ".txt", "w") as own:
    for _ in range(1000):
        recording.instant("after", stack=False)
    recording.flush()
    own.write("own")
print(recording.stop().events, open(sys.argv[1] + ".txt").read())
"""
        self.assertEqual(self.run_script(script), "2000 own\n")
        self.assertEqual(stackweave.open(self.path).info()["missing"], [])


class WrongFiles(RecordingCase):
    def assert_refused(self, text, path=None):
        with self.assertRaisesRegex(stackweave.StackweaveError, text) as raised:
            stackweave.open(path or self.path)
        self.assertNotIn("\n", str(raised.exception))
        self.assertIn(path or self.path, str(raised.exception))

    def test_each_wrong_file_is_refused_in_one_sentence(self):
        self.assert_refused("(?i)no such file|not exist|not found")
        for content, text in [
            (b"", "empty"),
            (b'{"traceEvents": []}', "JSON"),
            (gzip.compress(b"x" * 100), "gzip"),
            (b"hello\n" * 100, "no recording of Stackweave"),
            (os.urandom(5000), "no recording of Stackweave"),
        ]:
            with open(self.path, "wb") as file:
                file.write(content)
            self.assert_refused(text)
        os.remove(self.path)
        self.assert_refused("(?i)no recording|without recordings|holds no", self.folder)

    def test_a_cut_file_is_read_as_far_as_it_goes(self):
        with self.recording() as recording:
            for number in range(10_000):
                recording.counter("n", number * 1.1)
                if number % 1000 == 0:
                    recording.flush()
        with open(self.path, "rb") as file:
            whole = file.read()
        for keep in (len(whole) - 1, len(whole) // 2):
            with open(self.path, "wb") as file:
                file.write(whole[:keep])
            opened = stackweave.open(self.path)
            values = [event.values["value"] for event in opened.events()]
            self.assertEqual(values, [number * 1.1 for number in range(len(values))])
            self.assertTrue(opened.info()["missing"])

    def test_opening_nothing_is_an_error(self):
        with self.assertRaises(stackweave.StackweaveError):
            stackweave.open([])
        with self.assertRaises(TypeError):
            stackweave.open(3)


class Signals(RecordingCase):
    @unittest.skipUnless(hasattr(signal, "setitimer"), "no timers here")
    def test_handlers_may_feed_it(self):
        def handler(_number, _frame):
            with recorder.span("handler"):
                handled.append(1)

        handled = []
        before = signal.signal(signal.SIGALRM, handler)
        try:
            with self.recording() as recorder:
                signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
                for _ in range(50_000):
                    with recorder.span("x"):
                        pass
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, before)
        roles = [event.role for event in recorder.recording.events()]
        self.assertEqual(roles.count("begin"), roles.count("end"))
        self.assertEqual(recorder.stop().lost, {})
        names = [event.name for event in recorder.recording.events()]
        self.assertEqual((names.count("x"), names.count("handler")), (50_000, len(handled)))

    def test_the_writer_takes_no_signal(self):
        script = """
import os, signal, sys, time, stackweave
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
seen = []
with stackweave.Recorder(sys.argv[1]):
    for _ in range(200):
        os.kill(os.getpid(), signal.SIGUSR1)
        deadline = time.monotonic() + 30
        while not seen and time.monotonic() < deadline:
            pass
        assert seen.pop()
"""
        done = subprocess.run([PYTHON, "-c", script, self.path], capture_output=True, text=True, cwd=ROOT, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""), sys.version)
