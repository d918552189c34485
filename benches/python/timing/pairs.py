"""A push and a pop from Python: python pairs.py FOLDER PROFILER TIMINGS

Each figure is the minimum of TIMINGS timings of 20,000 pairs, minus that of an empty loop.
"""

import contextlib
import cProfile
import functools
import os
import sys
import time
from itertools import repeat

import tools
from report import report_result, version

BENCH = "timing/pair"
PAIRS = 20_000
TARGET_NS = 150
FILE = "model.py"
DEEP = 50


def timed(loop):
    began = time.thread_time_ns()
    loop()
    return (time.thread_time_ns() - began) / PAIRS


def empty():
    for _ in repeat(None, PAIRS):
        pass


def pushing(push, pop):
    def loop():
        for _ in repeat(None, PAIRS):
            push("forward", FILE, 12)
            pop()

    return loop


def entering(frame):
    def loop():
        for _ in repeat(None, PAIRS):
            with frame("forward", FILE, 12):
                pass

    return loop


def call():
    pass


def calling():
    for _ in repeat(None, PAIRS):
        call()


def profiled():
    profile = cProfile.Profile()

    def loop():
        profile.enable()
        calling()
        profile.disable()

    return loop


def by_hand():
    """Returns a loop that times its phases itself."""
    phases = []

    @contextlib.contextmanager
    def frame(name, filename, line):
        began = time.perf_counter_ns()
        try:
            yield
        finally:
            phases.append((name, filename, line, began, time.perf_counter_ns() - began))

    loop = entering(frame)

    def cleared():
        phases.clear()
        loop()

    return cleared


def of_state(module, depth):
    state = module.DynamoProfilerState()
    begin, end = tools.feeder(state, module.FunctionTraceTiming)
    for number in range(depth):
        begin(f"layer_{number}", FILE, number)
    loop = pushing(begin, end)

    def cleared():
        state.timings.clear()
        loop()

    return cleared


def of_ours(folder, depth):
    import stackweave

    timing = stackweave.Timing(os.path.join(folder, f"pairs-{depth}.swv"), overwrite=True)
    for number in range(depth):
        timing.push(f"layer_{number}", FILE, number)
    return timing


def contenders(folder, profiler, depth):
    """Yields the case, the name and a function that creates the loop of each contender."""
    suffix = f", {depth} deep" if depth else ""
    pair, entered = f"{version()}, push and pop{suffix}", f"{version()}, with{suffix}"
    timing = functools.cache(lambda: of_ours(folder, depth))

    def drop_in():
        import stackweave.torch.dynamo

        return of_state(stackweave.torch.dynamo, depth)

    def of_torch():
        if profiler is None:
            raise ImportError("no torch")
        return of_state(profiler, depth)

    yield pair, "ours", lambda: pushing(timing().push, timing().pop)
    yield pair, "ours, drop-in", drop_in
    yield pair, "torch", of_torch
    if depth == 0:
        yield pair, "cProfile", profiled
        yield pair, "a call", lambda: calling
        yield entered, "ours", lambda: entering(timing().phase)
        yield entered, "contextlib", by_hand


def main():
    folder, profiler, timings = sys.argv[1], tools.load(sys.argv[2]), int(sys.argv[3])
    kept = tools.warm_memory()
    loops = []
    for depth in (0, DEEP):
        for case, name, make in contenders(folder, profiler, depth):
            try:
                loops.append((case, name, make()))
            except (ImportError, AttributeError) as error:
                report_result(BENCH, case, "ns", name, absent=f"not installed: {error}")
    least = [float("inf")] * len(loops)
    nothing = float("inf")
    for _ in range(timings):
        nothing = min(nothing, timed(empty))
        for index, (_, _, loop) in enumerate(loops):
            least[index] = min(least[index], timed(loop))
    for cost, (case, name, _) in zip(least, loops, strict=True):
        report_result(BENCH, case, "ns", name, cost=cost - nothing)
    report_result(BENCH, f"{version()}, push and pop", "ns", "target", cost=TARGET_NS)
    del kept


if __name__ == "__main__":
    main()
