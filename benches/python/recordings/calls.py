"""A recorded program of calls: python calls.py CONTENDER THREADS CALLS FOLDER

Each figure is for one call: its start and its end.
"""

import cProfile
import os
import sys

import program
from outcome import measured, report_absent
from report import report_result

AREA = "recording/calls"


class OursFromPython:
    """Stackweave, with functions that record themselves. A separate process measures the same from Rust."""

    name = "ours, Python"
    file = "recorded.swv"
    keeps_events = True

    def __init__(self, path, calls):
        import stackweave

        self.recording = stackweave.Recorder(path)

    def program(self):
        return program.recorded(self.recording.begin, self.recording.end)

    def start(self):
        self.recording.start()

    def stop(self):
        self.recording.stop()


class VizTracer:
    """viztracer, with only Python functions. Its figures include its hook."""

    name = "viztracer"
    file = "calls.json"
    keeps_events = True
    raw = False

    def __init__(self, path, calls):
        import viztracer

        # The default keeps only the last million.
        self.tracer = viztracer.VizTracer(
            output_file=path, tracer_entries=calls + 1_000, ignore_c_function=True, dump_raw=self.raw, verbose=0
        )

    def program(self):
        return program.plain()

    def start(self):
        self.tracer.start()

    def stop(self):
        self.tracer.stop()
        self.tracer.save()


class VizTracerRaw(VizTracer):
    """viztracer, which writes its file without a Python object for each event."""

    name = "viztracer, raw"
    raw = True


class Profile:
    """cProfile, which counts and times functions, but records no events."""

    name = "cProfile"
    file = "calls.prof"
    keeps_events = False

    def __init__(self, path, calls):
        self.path, self.profile = path, cProfile.Profile(builtins=False)

    def program(self):
        grow = program.plain()

        def profiled(trees):
            # Up to 3.11 it records only the thread that enables it.
            self.profile.enable()
            grow(trees)
            self.profile.disable()

        return profiled

    def start(self):
        pass

    def stop(self):
        self.profile.dump_stats(self.path)


ALL = [OursFromPython, VizTracer, VizTracerRaw, Profile]


def main():
    name, threads, calls, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    contender = next(contender for contender in ALL if contender.name == name)
    case = "1 thread" if threads == 1 else f"{threads} threads"
    path = os.path.join(folder, contender.file)
    trees = max(1, calls // program.CALLS_PER_TREE // threads)
    calls = trees * program.CALLS_PER_TREE * threads
    if os.path.exists(path):
        os.remove(path)
    try:
        recorder = contender(path, calls)
    except (ImportError, AttributeError) as error:
        report_absent(AREA, case, name, f"not installed: {error}")
        return
    bare, recorded = program.plain(), recorder.program()
    outcome = measured(
        lambda: program.together(threads, lambda: bare(trees)),
        recorder.start,
        lambda: program.together(threads, lambda: recorded(trees)),
        recorder.stop,
        path,
    )
    if contender.keeps_events:
        outcome.report(AREA, case, name, calls)
    else:
        report_result(AREA, case, "ns", name, cost=outcome.cpu_ns / calls)


if __name__ == "__main__":
    main()
