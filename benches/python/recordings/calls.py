"""A program of calls, recorded: python calls.py CONTENDER THREADS CALLS FOLDER

A figure is for one call: its begin and its end.
"""

import cProfile
import os
import sys

import program
from outcome import measured, tell_absent
from report import tell

AREA = "recording/calls"


class OursFromPython:
    """Ours, told by the functions themselves; from Rust it is another process."""

    name = "ours, Python"
    file = "told.swv"
    keeps_events = True

    def __init__(self, path, calls):
        import stackweave

        self.recording = stackweave.Recording(path)

    def program(self):
        return program.told(self.recording.begin, self.recording.end)

    def start(self):
        self.recording.start()

    def stop(self):
        self.recording.stop()


class VizTracer:
    """viztracer, Python functions only; its hook is in its figures."""

    name = "viztracer"
    file = "calls.json"
    keeps_events = True
    raw = False

    def __init__(self, path, calls):
        import viztracer

        # The default keeps the last million only.
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
    """The same, writing its file without a Python object for each event."""

    name = "viztracer, raw"
    raw = True


class Profile:
    """cProfile: counts and times of each function, and no events."""

    name = "cProfile"
    file = "calls.prof"
    keeps_events = False

    def __init__(self, path, calls):
        self.path, self.profile = path, cProfile.Profile(builtins=False)

    def program(self):
        grow = program.plain()

        def profiled(trees):
            # Up to 3.11 it sees the thread that enables it.
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
        tell_absent(AREA, case, name, f"not installed: {error}")
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
        outcome.tell(AREA, case, name, calls)
    else:
        tell(AREA, case, "ns", name, cost=outcome.cpu_ns / calls)


if __name__ == "__main__":
    main()
