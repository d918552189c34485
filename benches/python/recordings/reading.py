"""What reading a file took, told to the benchmark."""

import time

import memory
from report import tell


def tell_read(bench, count, things, peer, reader, times=1):
    """`reader` imports what it needs, which is not timed, and returns a function that reads, and returns how many it
    has seen. `times`: tell also what so many times as many would take, by these figures."""
    try:
        read = reader()
    except ImportError as error:
        tell(bench, case(count, things), "ms", peer, absent=f"not installed: {error}")
        return
    memory.forget_peak()
    before = memory.peak_mb()
    began = time.process_time_ns()
    found = read()
    took_ms = (time.process_time_ns() - began) / 1e6
    if found < count * 0.9:
        tell(bench, case(count, things), "ms", peer, absent=f"read {found} of {count}")
        return
    peak_mb = memory.peak_mb() - before
    tell(bench, case(count, things), "ms", peer, cost=took_ms)
    tell(f"{bench}-memory", case(count, things), "MB", peer, cost=peak_mb)
    if times > 1:
        name = f"{peer} x {times}"
        tell(bench, case(times * count, things), "ms", name, cost=times * took_ms)
        tell(f"{bench}-memory", case(times * count, things), "MB", name, cost=times * peak_mb)


def case(count, things):
    return f"{count // 1_000_000} M {things}"
