"""Measures the cost of recording the events of a workload, and reports it to the benchmark."""

import os
import time
from dataclasses import dataclass

import memory
from report import report_result


@dataclass
class Outcome:
    """The cost of one recording. CPU times exclude the same workload without a recording."""

    cpu_ns: float
    total_ns: float
    stop_ns: float
    bytes: int
    peak_mb: float

    def report(self, area, case, peer, events):
        report_result(area, case, "ns", peer, cost=self.cpu_ns / events)
        report_result(f"{area}-total", case, "ns", peer, cost=self.total_ns / events)
        report_result(f"{area}-bytes", case, "bytes", peer, cost=self.bytes / events)
        report_result(f"{area}-stop", case, "ms", peer, cost=self.stop_ns / 1e6)
        report_result(f"{area}-memory", case, "MB", peer, cost=self.peak_mb)


def report_absent(area, case, peer, why):
    for bench, unit in (("", "ns"), ("-total", "ns"), ("-bytes", "bytes"), ("-stop", "ms"), ("-memory", "MB")):
        report_result(area + bench, case, unit, peer, absent=why)


def measured(bare, start, recorded, stop, path):
    """Returns the cost. Both workloads return the CPU time of their threads; `stop` returns when the file is complete."""
    bare()
    before_bare = time.process_time_ns()
    bare_cpu = bare()
    bare_total = time.process_time_ns() - before_bare
    memory.reset_peak()
    before_mb, before = memory.peak_mb(), time.process_time_ns()
    start()
    cpu = recorded()
    stopping = time.perf_counter_ns()
    stop()
    stop_ns = time.perf_counter_ns() - stopping
    return Outcome(
        cpu_ns=cpu - bare_cpu,
        total_ns=time.process_time_ns() - before - bare_total,
        stop_ns=stop_ns,
        bytes=os.path.getsize(path),
        peak_mb=memory.peak_mb() - before_mb,
    )
