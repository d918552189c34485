"""PyTorch's trace of CALLS calls: python torch_trace.py FOLDER CALLS

Its profiler records calls of Python functions with `with_stack`. `torch` is only `export_chrome_trace`, which writes the data that
stopping the profiler has prepared; `torch, with stop` is both.
"""

import json
import os
import sys

import program
from cost import case_of, measured, report_absent

NAMES = ("torch", "torch, with stop")


def calls_in(path):
    with open(path) as file:
        return sum(event.get("cat") == "python_function" for event in json.load(file)["traceEvents"])


def main():
    folder, calls = sys.argv[1], int(sys.argv[2])
    case = case_of(calls)
    try:
        from torch.profiler import ProfilerActivity, profile
    except ImportError as error:
        for name in NAMES:
            report_absent(case, name, f"not installed: {error}")
        return
    path = os.path.join(folder, "torch.json")
    grow = program.plain()
    trees = max(1, calls // program.CALLS_PER_TREE)
    profiler = profile(activities=[ProfilerActivity.CPU], with_stack=True)
    profiler.start()
    grow(trees)
    # Nothing is written yet, so the size is that of an empty file.
    stop = measured(profiler.stop, os.devnull)
    export = measured(lambda: profiler.export_chrome_trace(path), path)
    found = calls_in(path)
    os.remove(path)
    if found < calls * 0.9:
        for name in NAMES:
            report_absent(case, name, f"it has {found} of {calls} calls")
        return
    export.report(case, NAMES[0])
    export.after(stop).report(case, NAMES[1])


if __name__ == "__main__":
    main()
