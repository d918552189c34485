"""Measures the cost of an export, and reports it to the benchmark. src/export/cost.rs does the same in Rust."""

import os
import time
from dataclasses import dataclass

import memory
from report import report_result

BENCHES = (("", "ms"), ("-wall", "ms"), ("-memory", "MB"), ("-file", "MB"))
AREA = "export/calls"


@dataclass
class Cost:
    cpu_ms: float
    wall_ms: float
    peak_mb: float
    file_mb: float
    # The resident memory before.
    before_mb: float

    def after(self, other):
        """Returns the cost of both, one after the other. The memory that `other` left counts toward the peak."""
        peak_mb = max(other.peak_mb, self.before_mb + self.peak_mb - other.before_mb)
        return Cost(
            other.cpu_ms + self.cpu_ms, other.wall_ms + self.wall_ms, peak_mb, self.file_mb, other.before_mb
        )

    def report(self, case, peer, times=1):
        """Reports the cost, extrapolated to `times` as many calls."""
        figures = (self.cpu_ms, self.wall_ms, self.peak_mb, self.file_mb)
        for (bench, unit), figure in zip(BENCHES, figures):
            report_result(AREA + bench, case, unit, peer, cost=times * figure)


def measured(work, path):
    """Returns the cost of `work`, which returns when the file is complete. The peak is counted from the current resident memory."""
    memory.reset_peak()
    before_mb = memory.peak_mb()
    began, began_cpu = time.perf_counter_ns(), time.process_time_ns()
    work()
    cpu_ns, wall_ns = time.process_time_ns() - began_cpu, time.perf_counter_ns() - began
    return Cost(cpu_ns / 1e6, wall_ns / 1e6, memory.peak_mb() - before_mb, os.path.getsize(path) / 1e6, before_mb)


def report_absent(case, peer, why):
    for bench, unit in BENCHES:
        report_result(AREA + bench, case, unit, peer, absent=why)


def case_of(calls):
    return f"chrome, {calls // 1_000_000} M calls"
