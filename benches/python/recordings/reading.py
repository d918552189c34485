"""Measures the cost of reading a file, and reports it to the benchmark."""

import time

import memory
from report import report_result


def report_read(bench, count, things, peer, reader, times=1):
    """Reports the cost of reading. `reader` imports its modules, which is not timed, and returns a function that reads the file and
    returns the number of items. If `times` is greater than 1, also reports the cost extrapolated to `times` as many items."""
    try:
        read = reader()
    except ImportError as error:
        report_result(bench, case(count, things), "ms", peer, absent=f"not installed: {error}")
        return
    memory.reset_peak()
    before = memory.peak_mb()
    began = time.process_time_ns()
    found = read()
    took_ms = (time.process_time_ns() - began) / 1e6
    if found < count * 0.9:
        report_result(bench, case(count, things), "ms", peer, absent=f"read {found} of {count}")
        return
    peak_mb = memory.peak_mb() - before
    report_result(bench, case(count, things), "ms", peer, cost=took_ms)
    report_result(f"{bench}-memory", case(count, things), "MB", peer, cost=peak_mb)
    if times > 1:
        name = f"{peer} x {times}"
        report_result(bench, case(times * count, things), "ms", name, cost=times * took_ms)
        report_result(f"{bench}-memory", case(times * count, things), "MB", name, cost=times * peak_mb)


def case(count, things):
    return f"{count // 1_000_000} M {things}"
