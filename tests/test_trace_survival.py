"""A trace is readable if its program is killed, runs for a long time, forks, or fills the disk."""

import itertools
import os
import signal
import subprocess
import threading
import warnings

import stackweave
from tests.recordings import RecordingCase
from tests.support import PYTHON, ROOT
from tests.trace_support import BEGIN, Replay, TraceCase, multiset, of_program

#: The number of calls of the long trace. More calls do not need more memory.
CALLS = int(os.environ.get("STACKWEAVE_TRACE_CALLS", "5000000"))


class Killed(RecordingCase):
    def kill_when_ready(self, script, *arguments):
        child = subprocess.Popen(
            [PYTHON, "-c", BEGIN + script, self.path, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        with child:
            self.assertEqual(child.stdout.readline(), "ready\n")
            child.kill()
        self.assertEqual(child.returncode, -signal.SIGKILL)
        return stackweave.open(self.path)

    def test_everything_up_to_the_last_flush_is_kept(self):
        script = """
def work():
    for _ in range(20000):
        leaf()
    recording.flush()
    leaf()
    print("ready", flush=True)
    signal.pause()

recording = trace(flush_every=1000).start()
down(10, work)
"""
        opened = self.kill_when_ready(script)
        replay = Replay(opened.events())
        self.assertEqual(multiset(span.kind for span in of_program(replay, "leaf")), {"call": 20000})
        (work,) = of_program(replay, "work")
        self.assertEqual(len([child for child in work.children if child.name == "leaf"]), 20000)
        (names,) = replay.unfinished.values()
        self.assertEqual(names[-12:], ["down"] * 11 + ["work"])
        self.assertIn("not closed", opened.info()["missing"][0])

    def test_a_busy_program_with_threads_nests_whenever_it_is_killed(self):
        script = """
def work():
    while True:
        down(5, leaf)
        if recorded():
            print("ready", flush=True)

def recorded():
    if notified or os.path.getsize(sys.argv[1]) < 100000:
        return False
    notified.append(1)
    return len(notified) == 1

notified = []
recording = trace(flush_every=0.01).start()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
"""
        for _ in range(2):
            opened = self.kill_when_ready(script)
            replay = Replay(opened.events())
            self.assertGreater(len(of_program(replay, "leaf")), 1000)
            for span in of_program(replay, "leaf"):
                self.assertEqual((span.children, span.kind), ([], "call"))
            os.remove(self.path)

    def test_a_full_disk_does_not_stop_the_program(self):
        script = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with trace() as recording:
        for _ in range(400):
            down(3, leaf)
        recording.flush()
        for _ in range(60000):
            down(3, leaf)
print("done", len(caught), "could not be written" in str(caught[0].message))
"""
        self.assertEqual(self.run_script(BEGIN + script), "done 1 True\n")
        opened = stackweave.open(self.path)
        replay = Replay(opened.events(), is_whole=False)
        self.assertGreater(len(of_program(replay, "leaf")), 100)
        self.assertGreater(opened.tree().calls + sum(row.calls for row in opened.top()), 100)
        self.assertNotEqual(opened.info()["missing"], [])


class Long(RecordingCase):
    def test_memory_does_not_grow_with_the_trace(self):
        script = """
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

def work(calls):
    for _ in range(calls):
        leaf()

calls = int(sys.argv[2])
recording = trace(buffer="16MB").start()
work(calls // 10)
early = resident()
work(calls - calls // 10)
late = resident()
summary = recording.stop()
print(summary.events, summary.bytes, early, late, resident())
assert not any(summary.lost.values()), summary.lost
"""
        shown = self.run_script(BEGIN + script, str(CALLS))
        events, size, early, late, stopped = map(int, shown.split())
        self.assertGreaterEqual(events, 2 * CALLS)
        self.assertLess(late - early, 24 << 10, "KiB more for ten times as many calls")
        self.assertLess(stopped - late, 16 << 10, "KiB more to stop")
        self.assertLess(size / events, 10)

    def test_a_thousand_threads_leave_no_memory_behind(self):
        script = """
def resident():
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * 4

def some(count):
    for _ in range(count):
        thread = threading.Thread(target=down, args=(5, leaf))
        thread.start()
        thread.join()

with trace() as recording:
    some(300)
    early = resident()
    some(700)
    print(resident() - early)
"""
        self.assertLess(int(self.run_script(BEGIN + script)), 16 << 10)
        replay = Replay(stackweave.open(self.path).events())
        self.assertEqual(len(of_program(replay, "leaf")), 1000)


class Full(TraceCase):
    def test_what_is_dropped_leaves_the_rest_in_its_place(self):
        """Each block of events starts with the open spans."""

        def leaf():
            return None

        def work():
            for _ in range(30000):
                leaf()

        def down(depth):
            return down(depth - 1) if depth else work()

        def main():
            threads = [threading.Thread(target=down, args=(depth,)) for depth in (3, 40)]
            for thread in threads:
                thread.start()
            down(20)
            for thread in threads:
                thread.join()

        for mechanism in self.each_mechanism():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trace = self.trace(main, mechanism=mechanism, when_full="drop", buffer="64KB")
            # The last ends of a thread may be missing, and on a busy machine all of its events.
            replay = Replay(trace.recording.events())
            whole = [parts for count in (1, 2, 3) for parts in itertools.combinations((4, 41, 21), count)]
            found = (len(replay.called("work")), len(replay.called("down")))
            self.assertIn(found, [(len(parts), sum(parts)) for parts in whole])
            lost = sum(trace.stop().lost.values())
            spans = len(replay.called("leaf"))
            self.assertGreaterEqual(spans + lost, 90000)
            self.assertEqual(
                sum(child.name == "leaf" for span in replay.called("work") for child in span.children), spans
            )


class Rings(TraceCase):
    def test_the_last_events_have_their_whole_stacks(self):
        # Calls that take equally long are written in a fraction of a byte each, and a ring holds many of them.
        calls = 1_000_000

        def leaf(number):
            return number

        def work():
            for number in range(calls):
                leaf(number)

        def down(depth):
            return down(depth - 1) if depth else work()

        for mechanism in self.each_mechanism():
            trace = self.trace(lambda: down(40), mechanism=mechanism, ring="64KB")
            replay = self.replay(trace)
            leaves = replay.called("leaf")
            self.assertGreater(len(leaves), 1000)
            self.assertLess(len(leaves), calls)
            (around,) = replay.called("work")
            self.assertEqual(around.kind, "open")
            self.assertEqual(len([child for child in around.children if child.name == "leaf"]), len(leaves))
            self.assertEqual(len(replay.called("down")), 41)

    def test_rings_of_threads_too(self):
        def leaf():
            return None

        def work(depth):
            if depth:
                return work(depth - 1)
            for _ in range(20000):
                leaf()
            return None

        def main():
            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        trace = self.trace(main, ring="256KB")
        replay = self.replay(trace)
        for span in replay.called("leaf"):
            self.assertEqual(span.children, [])
        for name in replay.roots:
            for span in replay.walk(name):
                if span.name == "leaf":
                    break
        for span in replay.called("work"):
            self.assertLessEqual(len({child.name for child in span.children}), 1)
