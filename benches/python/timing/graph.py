"""A call graph of 200 functions, as the Dynamo profiler draws it: python graph.py FOLDER PROFILER ours|torch TIMES

Wall-clock time from the statistics' file to the picture.
"""

import os
import sys
import time

import tools
from report import tell

BENCH = "timing/graph"
CASE = "200 functions"
FUNCTIONS = 200
LAYER = 10
# The last function of a walk takes as long as all others, so that each is large enough to be drawn.
STEP_NS, LAST_NS = 1_000_000, 20_000_000
TARGET_MS = 2_000


def callees(function):
    """Whom a function calls: two of the next layer, and every third one of the layer after that, too."""
    below, place = (function // LAYER + 1) * LAYER, function % LAYER
    if below >= FUNCTIONS:
        return []
    found = [below + place, below + (3 * place + 1) % LAYER]
    if function % 3 == 0 and below + LAYER < FUNCTIONS:
        found.append(below + LAYER + (7 * place + 2) % LAYER)
    return found


def fill(module):
    """Walks from the functions of the first layer down to the last, by chance that is the same in every run."""
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
        for place, function in enumerate(path):
            caller = path[place - 1] if place else None
            own = STEP_NS if place < len(path) - 1 else LAST_NS
            took = (len(path) - place - 1) * STEP_NS + LAST_NS
            state.record_timing(
                module.FunctionTraceTiming(
                    func_name=names[function],
                    filename="graph.py",
                    firstlineno=function,
                    cumtime_ns=took,
                    tottime_ns=own,
                    bytecode_count=10,
                    inline_depth=place,
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
        tell(BENCH, CASE, "ms", peer, absent="no torch")
        return
    else:
        module = profiler
    state = fill(module)
    file, picture = (os.path.join(folder, f"graph-{name}.{suffix}") for suffix in ("prof", "svg"))
    for path in (file, picture):
        if os.path.exists(path):
            os.remove(path)
    state.generate_pstats(file)
    sys.stdout, told = sys.stderr, sys.stdout
    began = time.perf_counter_ns()
    drawn = state.generate_svg(file, picture)
    took = time.perf_counter_ns() - began
    sys.stdout = told
    if drawn is None:
        tell(BENCH, CASE, "ms", peer, absent="not installed: gprof2dot or dot")
        return
    tell(BENCH, CASE, "ms", peer, cost=took / 1e6)
    if name == "ours":
        tell(BENCH, CASE, "ms", "target", cost=TARGET_MS)


if __name__ == "__main__":
    main()
