"""Walks outside the usual order: in signals, in other threads and interpreters, while other threads hold the GIL."""

import ctypes
import os
import signal
import sys
import threading
import time

import support
from support import check


def case_self_test():
    assert support.held.unavailable() is None
    reason = support.held.fallback_reason()
    assert reason is None, reason


def case_self_test_of_a_wrong_table():
    own = sys.version_info[1]
    assert support.held.self_test_with_table_of(own) is None
    if own < 13:
        return  # a wrong table there could lead to any address
    for minor in {13, 14} - {own}:
        reason = support.held.self_test_with_table_of(minor)
        if (own, minor) != (15, 14):  # their frames have the same layout
            assert reason == b"the self-test found other frames than the interpreter reports", (minor, reason)


def case_no_allocation():
    assert support.held.allocations() == 0


def case_foreign_thread():
    assert support.released.foreign_thread() == b"0 frames, thread without a Python state"


def case_gil_held_by_another_thread():
    depths = []
    walker = threading.Thread(target=lambda: depths.append(support.released.walk_while_held()))
    walker.start()
    assert support.held.hold_gil(), "the walk waited for the GIL"
    walker.join()
    assert depths[0] >= 4, depths


def case_public_api_without_the_gil():
    assert support.released.frames("walk_public", 8) == ([], "the GIL is not held")


def case_other_thread():
    api, ready, done, expected = ctypes.pythonapi, threading.Event(), threading.Event(), []
    api.PyThreadState_Get.restype = ctypes.c_uint64

    def wait():
        expected.append((api.PyThreadState_Get(), support.truth(sys._getframe())))
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    time.sleep(0.05)
    state, outer = expected[0]
    frames, stop = support.held.frames("walk_thread", 64, ctypes.c_uint64(state))
    done.set()
    thread.join()
    assert stop == "end of stack"
    assert [frame.code for frame in frames][-len(outer) :] == [code for code, _, _, _ in outer]


def case_python_signal_handler():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(check("Python signal")))
    try:
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGUSR1)
            sum(number for number in range(1000))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen


def case_raw_signal_handler():
    def recurse(depth):
        if depth:
            return recurse(depth - 1)
        expected = support.truth(sys._getframe())
        signal.raise_signal(signal.SIGUSR2)
        records = (support.Record * 4096)()
        frames = records[: support.held.seen(records)]
        support.compare(frames, expected, "raw signal")
        support.check_activations(frames, "raw signal")

    assert support.held.handle(signal.SIGUSR2) == 0
    for depth in 0, 5, 100:
        recurse(depth)


def busy():
    class Point:
        def __init__(self, x):
            self.x = x

    def numbers(count):
        for number in range(count):
            yield number

    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def fail(depth):
        if not depth:
            raise KeyError
        fail(depth - 1)

    fibonacci(10)
    sum(map(lambda number: Point(number).x, numbers(50)))
    sorted(range(30), key=lambda number: -number)
    exec("def made(): return [n for n in range(5)]\nmade()", {})
    try:
        fail(20)
    except KeyError:
        pass


def case_interrupted_anywhere():
    counters = support.held.samples, support.held.torn_samples, support.held.cut_samples
    before = [counter() for counter in counters]
    support.held.interrupt(signal.SIGUSR2, ctypes.c_uint64(20))
    wanted = 100_000 if os.environ.get("STACKWEAVE_TEST_LONG") == "1" else 1_000
    while counters[0]() < before[0] + wanted:
        busy()
    support.held.stop_interrupting()
    samples, torn, cut = (counter() - value for counter, value in zip(counters, before))
    print("samples", samples, "torn", torn, "cut", cut)
    # Up to 3.12 the remains of an earlier stack can, once in hundreds of thousands of signals, look like valid frames.
    assert torn * 50 < samples and cut <= (sys.version_info < (3, 13)), (samples, torn, cut)


IN_SUB_INTERPRETER = """
import sys
sys.path.insert(0, {folder!r})
import support
support.load({library!r})
def recurse(depth):
    return recurse(depth - 1) if depth else support.check("sub-interpreter", without_gil={without_gil})
for depth in 0, 30:
    recurse(depth)
assert support.checks == 2
"""


def case_sub_interpreter(library):
    # Up to 3.11 a thread without the GIL can't find out in which of its interpreters it is.
    source = IN_SUB_INTERPRETER.format(
        folder=os.path.dirname(__file__), library=library, without_gil=sys.version_info >= (3, 12)
    )
    support.in_sub_interpreter(source, lambda: check("after a sub-interpreter"))
    check("sub-interpreter ended")


def case_greenlets():
    try:
        from greenlet import getcurrent, greenlet
    except ImportError:
        print("skipped: greenlet is not installed")
        return

    def work(rounds):
        for _ in range(rounds):
            check("greenlet")
            getcurrent().parent.switch()

    greenlets = [greenlet(work) for _ in range(3)]
    for _ in range(3):
        for each in greenlets:
            each.switch(5)
            check("between greenlets")
