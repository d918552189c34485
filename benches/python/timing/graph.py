"""Draws a call graph of 200 functions, as the Dynamo profiler does: python graph.py FOLDER PROFILER ours|torch TIMES

Measures the wall-clock time from the statistics file to the picture.
"""

import os
import sys
import time

import tools
from report import report_result

BENCH = "timing/graph"
CASE = "200 functions"
FUNCTIONS = 200
LAYER = 10
# The last function of a walk takes as long as all others together, so that each is large enough to be drawn.
STEP_NS, LAST_NS = 1_000_000, 20_000_000
TARGET_MS = 2_000


def callees(function):
    """Returns the callees of a function: two of the next layer and, for every third function, one of the layer after that."""
    below, index = (function // LAYER + 1) * LAYER, function % LAYER
    if below >= FUNCTIONS:
        return []
    found = [below + index, below + (3 * index + 1) % LAYER]
    if function % 3 == 0 and below + LAYER < FUNCTIONS:
        found.append(below + LAYER + (7 * index + 2) % LAYER)
    return found


def fill(module):
    """Records pseudo-random walks from the first layer to the last, which are the same in every run."""
    state, seed = module.DynamoProfilerState(), 1
    names = [f"Module{number % 7}.function_{number}" for number in range(FUNCTIONS)]
    for walk in range(4_000):
        path, function = [], walk % LAYER
        while True:
            path.append(function)
            below = callees(function)
            if not below:
                break
            seed = (seed * 0x5851F42D4C957F2D + 0x14057B7EF767814F) % 2**64
            function = below[(seed >> 33) % len(below)]
        for depth, function in enumerate(path):
            caller = path[depth - 1] if depth else None
            self_ns = STEP_NS if depth < len(path) - 1 else LAST_NS
            total_ns = (len(path) - depth - 1) * STEP_NS + LAST_NS
            state.record_timing(
                module.FunctionTraceTiming(
                    func_name=names[function],
                    filename="graph.py",
                    firstlineno=function,
                    cumtime_ns=total_ns,
                    tottime_ns=self_ns,
                    bytecode_count=10,
                    inline_depth=depth,
                    caller_func_name=None if caller is None else names[caller],
                    caller_filename=None if caller is None else "graph.py",
                    caller_firstlineno=caller,
                )
            )
    return state


def main():
    folder, profiler, name = sys.argv[1], tools.load(sys.argv[2]), sys.argv[3]
    peer = "gprof2dot + dot" if name == "torch" else name
    if name == "ours":
        import stackweave.torch.dynamo as module
    elif profiler is None:
        report_result(BENCH, CASE, "ms", peer, absent="no torch")
        return
    else:
        module = profiler
    state = fill(module)
    file, picture = (os.path.join(folder, f"graph-{name}.{suffix}") for suffix in ("prof", "svg"))
    for path in (file, picture):
        if os.path.exists(path):
            os.remove(path)
    state.generate_pstats(file)
    sys.stdout, stdout = sys.stderr, sys.stdout
    began = time.perf_counter_ns()
    drawn = state.generate_svg(file, picture)
    took = time.perf_counter_ns() - began
    sys.stdout = stdout
    if drawn is None:
        report_result(BENCH, CASE, "ms", peer, absent="not installed: gprof2dot or dot")
        return
    report_result(BENCH, CASE, "ms", peer, cost=took / 1e6)
    if name == "ours":
        report_result(BENCH, CASE, "ms", "target", cost=TARGET_MS)


if __name__ == "__main__":
    main()
