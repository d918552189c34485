"""Many pairs of push and pop from Python, and their statistics: python many.py FOLDER PROFILER ours|torch PAIRS

torch keeps an object for each pair, so its figures are measured with a tenth of the pairs and extrapolated.
"""

import os
import sys
import time

import memory
import tools
from report import report_result

BENCHES = (
    ("timing/many", "ns"),
    ("timing/many-memory", "MB"),
    ("timing/many-bytes", "bytes"),
    ("timing/statistics", "ms"),
)
TIMES = 10
FUNCTIONS = 100
DEPTH = 10
NAMES = [f"phase_{number}" for number in range(FUNCTIONS)]
TARGET_MB = 400


def feed(begin, end, pairs):
    for number in range(pairs // DEPTH):
        for depth in range(DEPTH):
            place = (number % 7 + depth * (1 + number % 5)) % FUNCTIONS
            begin(NAMES[place], "phases.py", place)
        for _ in range(DEPTH):
            end()


def measured(work):
    began = time.process_time_ns()
    work()
    return time.process_time_ns() - began


def ours(folder, pairs):
    import stackweave

    path = os.path.join(folder, "many-python.swv")
    timing = stackweave.Timing(path, overwrite=True)

    def record():
        feed(timing.push, timing.pop, pairs)
        timing.stop()

    def statistics():
        calls = sum(cost[1] for cost in timing.recording.stats().stats.values())
        assert calls == pairs, calls

    memory.reset_peak()
    before = memory.peak_mb()
    took = measured(record)
    peak = memory.peak_mb() - before
    return took, peak, os.path.getsize(path) / pairs, measured(statistics)


def torch(profiler, pairs):
    state = profiler.DynamoProfilerState()
    begin, end = tools.feeder(state, profiler.FunctionTraceTiming)
    memory.reset_peak()
    before = memory.peak_mb()
    took = measured(lambda: feed(begin, end, pairs))
    peak = memory.peak_mb() - before
    return took, peak, peak * (1 << 20) / pairs, measured(state.generate_pstats)


def main():
    folder, profiler, name, pairs = sys.argv[1], tools.load(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    times = TIMES if name == "torch" else 1
    peer = "torch x 10" if name == "torch" else name
    case = f"Python, {pairs * times // 1_000_000} M pairs"
    if name == "ours":
        took, peak, size, statistics = ours(folder, pairs)
    elif profiler is not None:
        took, peak, size, statistics = torch(profiler, pairs)
    else:
        for bench, unit in BENCHES:
            report_result(bench, case, unit, peer, absent="no torch")
        return
    figures = took / pairs, peak * times, size, statistics * times / 1e6
    for (bench, unit), figure in zip(BENCHES, figures, strict=True):
        report_result(bench, case, unit, peer, cost=figure)
    if name == "ours":
        report_result("timing/many-memory", case, "MB", "target", cost=TARGET_MB)


if __name__ == "__main__":
    main()
