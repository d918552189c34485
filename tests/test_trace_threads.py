"""Threads are traced that run before the start or start later, busy and idle ones."""

import contextlib
import signal
import threading
import time

import stackweave
from tests.trace_support import Counts, TraceCase


def leaf():
    return None


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def numbers(limit):
    yield from range(limit)


def portion(number):
    """Does the same work in each thread: 1 + 1 + 41 + 11 calls."""
    leaf()
    fibonacci(6 + number % 2 * 0)
    return sum(numbers(10))


def busy(stopped, started):
    started.release()
    while not stopped.is_set():
        portion(0)
        time.sleep(0.0002)


def idle(started, finished):
    started.release()
    finished.acquire()


@contextlib.contextmanager
def running(target, count, *arguments):
    """Yields threads that have all started. They end with the block if `arguments` make them."""
    started = threading.Semaphore(0)
    threads = [threading.Thread(target=target, args=(*arguments, started)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        started.acquire()
    yield threads
    for thread in threads:
        thread.join()


class Threads(TraceCase):
    def test_fifty_at_once_are_all_there(self):
        def main():
            threads = [
                threading.Thread(target=portion, args=(number,), name=f"thread {number}") for number in range(50)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        for mechanism in self.each_mechanism():
            trace = self.trace(main, mechanism=mechanism)
            functions, edges = Counts.from_stats(trace.recording.stats()).of(__file__)
            self.assertEqual(functions["portion"], (50, 50))
            self.assertEqual(functions["fibonacci"], (25 * 50, 50))
            self.assertEqual(functions["numbers"], (11 * 50, 11 * 50))
            self.assertEqual((functions["leaf"], edges[("portion", "leaf")]), ((50, 50), (50, 50)))
            spans = self.replay(trace).called("portion")
            self.assertEqual(len({span.thread for span in spans}), 50)
            names = {
                event.thread_name for event in trace.recording.events() if event.name and event.name.endswith("portion")
            }
            self.assertEqual(names, {f"thread {number}" for number in range(50)})

    def test_those_that_run_before_the_start(self):
        for mechanism in self.each_mechanism():
            stopped = threading.Event()
            with running(busy, 4, stopped):
                with self.tracing(mechanism=mechanism, gc=False) as trace:
                    wait_for_calls(trace, 4)
                stopped.set()
            replay = self.replay(trace)
            opened = replay.called("busy")
            self.assertEqual([span.kind for span in opened], ["open"] * 4)
            for span in opened:
                portions = [child for child in span.children if child.name == "portion" and child.kind == "call"]
                self.assertGreater(len(portions), 2)
                whole = portions[1:-1]
                self.assertEqual({len(list(each.walk())) for each in whole}, {1 + 1 + 25 + 11})

    def test_those_that_do_nothing_have_a_stack(self):
        """Their spans are as long as the trace."""
        for mechanism in self.each_mechanism():
            finished = threading.Lock()
            finished.acquire()
            started = threading.Semaphore(0)
            thread = threading.Thread(target=idle, args=(started, finished), name="idle one")
            thread.start()
            started.acquire()
            with self.tracing(mechanism=mechanism, gc=False) as trace:
                leaf()
            finished.release()
            thread.join()
            replay = self.replay(trace)
            (span,) = replay.called("idle")
            self.assertEqual((span.kind, span.thread, span.children), ("open", thread.native_id, []))
            (called,) = replay.called("leaf")
            self.assertTrue(span.begin <= called.begin and called.end <= span.end)
            self.assertEqual(Counts.from_stats(trace.recording.stats()).of(__file__)[0], {"leaf": (1, 1)})

    def test_any_thread_may_start_and_another_may_stop(self):
        for mechanism in self.each_mechanism():
            trace = self.tracing(mechanism=mechanism, gc=False)
            stopped = threading.Event()
            with running(busy, 2, stopped):
                in_thread(trace.start)
                wait_for_calls(trace, 3)
                in_thread(trace.stop)
                stopped.set()
            replay = self.replay(trace)
            self.assertEqual(len(replay.called("busy")), 2)

    def test_pauses_hold_for_all_threads(self):
        seen = []

        def paused():
            seen.append(threading.get_native_id())

        def until(stopped, started):
            started.release()
            while not stopped.is_set():
                target()
                time.sleep(0.0002)

        for mechanism in self.each_mechanism():
            stopped, target = threading.Event(), leaf
            seen.clear()
            with running(until, 3, stopped):
                with self.tracing(mechanism=mechanism, gc=False) as trace:
                    wait_for_calls(trace, 5)
                    trace.pause()
                    target = paused
                    while len(set(seen)) < 3:
                        time.sleep(0.001)
                    target = portion_of_nothing
                    trace.resume()
                    wait_for_calls(trace, 5)
                stopped.set()
            replay = self.replay(trace)
            self.assertLessEqual(len(replay.called("paused")), 3, "one that was just being called, at most")
            self.assertGreater(len(replay.called("portion_of_nothing")), 3)

    def test_a_signal_handler_is_a_call_like_others(self):
        def handler(_number, _frame):
            leaf()

        def main():
            before = signal.signal(signal.SIGUSR1, handler)
            try:
                for _ in range(5):
                    signal.raise_signal(signal.SIGUSR1)
                    fibonacci(3)
            finally:
                signal.signal(signal.SIGUSR1, before)

        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(main, mechanism=mechanism))
            handlers = replay.called("handler")
            self.assertEqual([span.shape for span in handlers], [("handler", "leaf")] * 5)


class SeveralTraces(TraceCase):
    def test_one_at_a_time(self):
        with self.tracing() as trace:
            other = stackweave.trace(self.path + "2")
            with self.assertRaisesRegex(stackweave.StackweaveError, "trac"):
                other.start()
            leaf()
        self.assertEqual(len(self.replay(trace).called("leaf")), 1)
        with stackweave.trace(self.path + "3") as third:
            leaf()
        self.assertEqual(len(self.replay(third).called("leaf")), 1)

    def test_a_plain_recording_beside_it_has_no_calls(self):
        with self.tracing() as trace, stackweave.Recorder(self.path + "2") as recording:
            leaf()
            recording.instant("other", stack=False)
        self.assertEqual(len(self.replay(trace).called("leaf")), 1)
        self.assertEqual([event.name for event in recording.recording.events()], ["other"])


def portion_of_nothing():
    return None


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def wait_for_calls(_trace, turns):
    """Waits, so that other threads run."""
    for _ in range(turns):
        time.sleep(0.01)
