"""What a call costs when it is told to an observer that does next to nothing: python measure_calls.py LIBRARY

The observer reads the clock and stores sixteen bytes. Each figure is the one at the cheapest tenth of many rounds, in
turn with rounds without hooks, in processor time of the thread.
"""

import gc
import sys
import time

import support

ROUNDS = 60


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def timed():
    before = time.thread_time_ns()
    fib(20)
    return time.thread_time_ns() - before


def main(path):
    support.load(path)
    gc.disable()
    version = sys.version.split()[0]
    ways = {"monitoring": 1, "profile slot": 3} if sys.version_info >= (3, 12) else {"eval hook": 2, "profile slot": 3}
    for name, mechanism in ways.items():
        plain, told, events = [], [], 0
        for _ in range(ROUNDS):
            timed()
            plain.append(timed())
            fault = support.held.stamps_start(mechanism, False)
            assert fault is None, fault
            timed()
            before = support.held.stamps()
            told.append(timed())
            events = support.held.stamps() - before
            support.held.calls_stop()
        plain, told = sorted(plain)[ROUNDS // 10], sorted(told)[ROUNDS // 10]
        print(f"{version:8} {name:12} {told / plain:5.2f}x {(told - plain) / events:6.1f} ns an event ({events} events)")


if __name__ == "__main__":
    main(sys.argv[1])
