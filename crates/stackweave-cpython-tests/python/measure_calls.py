"""Measures the cost of a call with an observer that does as little as possible: python measure_calls.py LIBRARY

The observer reads the clock and stores sixteen bytes. Each figure is that of the cheapest tenth of many rounds, which
alternate with rounds without hooks, in processor time of the thread.
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
    has_monitoring = sys.version_info >= (3, 12)
    mechanisms = {"monitoring": 1, "profile slot": 3} if has_monitoring else {"eval hook": 2, "profile slot": 3}
    for name, mechanism in mechanisms.items():
        plain, observed, events = [], [], 0
        for _ in range(ROUNDS):
            timed()
            plain.append(timed())
            fault = support.held.stamps_start(mechanism, False)
            assert fault is None, fault
            timed()
            before = support.held.stamps()
            observed.append(timed())
            events = support.held.stamps() - before
            support.held.calls_stop()
        plain, observed = sorted(plain)[ROUNDS // 10], sorted(observed)[ROUNDS // 10]
        overhead = (observed - plain) / events
        print(f"{version:8} {name:12} {observed / plain:5.2f}x {overhead:6.1f} ns an event ({events} events)")


if __name__ == "__main__":
    main(sys.argv[1])
