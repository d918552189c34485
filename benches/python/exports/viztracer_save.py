"""viztracer's file of CALLS calls: python viztracer_save.py CONTENDER FOLDER CALLS TIMES

The calls are traced before; only `save` is measured, from its buffer to the complete JSON. The figures are extrapolated to TIMES as
many calls.
"""

import os
import sys

import program
from cost import case_of, measured, report_absent


def main():
    name, folder, calls, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    try:
        import viztracer
    except ImportError as error:
        report_absent(case_of(calls), name, f"not installed: {error}")
        return
    path = os.path.join(folder, "viztracer.json")
    trees = max(1, calls // program.CALLS_PER_TREE)
    tracer = viztracer.VizTracer(
        output_file=path,
        # The default keeps only the last million.
        tracer_entries=trees * program.CALLS_PER_TREE + 1_000,
        ignore_c_function=True,
        dump_raw=name == "viztracer, raw",
        verbose=0,
    )
    grow = program.plain()
    tracer.start()
    grow(trees)
    tracer.stop()
    cost = measured(tracer.save, path)
    os.remove(path)
    cost.report(case_of(times * calls), name if times == 1 else f"{name} x {times}", times)


if __name__ == "__main__":
    main()
