"""What an export took, told to the benchmark. src/export/cost.rs is the same in Rust."""

import os
import time
from dataclasses import dataclass

import memory
from report import tell

BENCHES = (("", "ms"), ("-wall", "ms"), ("-memory", "MB"), ("-file", "MB"))
AREA = "export/calls"


@dataclass
class Cost:
    cpu_ms: float
    wall_ms: float
    peak_mb: float
    file_mb: float
    # What was resident before.
    before_mb: float

    def after(self, other):
        """Both, one after the other; what `other` left in memory counts for the peak."""
        peak_mb = max(other.peak_mb, self.before_mb + self.peak_mb - other.before_mb)
        return Cost(
            other.cpu_ms + self.cpu_ms, other.wall_ms + self.wall_ms, peak_mb, self.file_mb, other.before_mb
        )

    def tell(self, case, peer, times=1):
        """`times`: as much as so many times as many calls would take, by these figures."""
        figures = (self.cpu_ms, self.wall_ms, self.peak_mb, self.file_mb)
        for (bench, unit), figure in zip(BENCHES, figures):
            tell(AREA + bench, case, unit, peer, cost=times * figure)


def measured(work, path):
    """`work` returns when the file is complete. What it adds to the peak is counted from what is resident now."""
    memory.forget_peak()
    before_mb = memory.peak_mb()
    began, began_cpu = time.perf_counter_ns(), time.process_time_ns()
    work()
    cpu_ns, wall_ns = time.process_time_ns() - began_cpu, time.perf_counter_ns() - began
    return Cost(cpu_ns / 1e6, wall_ns / 1e6, memory.peak_mb() - before_mb, os.path.getsize(path) / 1e6, before_mb)


def tell_absent(case, peer, why):
    for bench, unit in BENCHES:
        tell(AREA + bench, case, unit, peer, absent=why)


def case_of(calls):
    return f"chrome, {calls // 1_000_000} M calls"
