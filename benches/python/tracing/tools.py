"""Tracers, which are started before a program and stopped after it.

`calls` returns the number of recorded calls of Python functions; `None` if it is unknown. `records_c` is true if the tracer also
records calls of native functions.
"""

import ctypes
import os


class Tool:
    records_c = False
    # The divisor of a program's repetitions, for tracers whose events are expensive.
    part = 1
    file = None

    def __init__(self, folder, library, entries):
        pass

    def start(self):
        pass

    def stop(self):
        pass

    def save(self):
        """Writes the complete file after the last event."""
        self.stop()

    def calls(self):
        return None


class Plain(Tool):
    """No tracer: the difference between two runs of the same program."""

    name = "plain"


class Ours(Tool):
    """Stackweave, which records every call and return in time order, with the caller's line, in a file."""

    name = "ours"
    file = "trace.swv"
    options = {}

    def __init__(self, folder, library, entries):
        import stackweave

        self.new, self.path = stackweave.trace, os.path.join(folder, self.file)

    def start(self):
        self.trace = self.new(self.path, overwrite=True, **self.options)
        self.trace.start()

    def stop(self):
        self.trace.stop()

    def calls(self):
        return sum(calls for _, calls, _, _, _ in self.trace.recording.stats().stats.values())


class OursWithC(Ours):
    name = "ours, C calls"
    records_c = True
    options = {"c_calls": True}


class OursDemoting(Ours):
    """Stackweave, which stops recording functions that are hot and short."""

    name = "ours, demotion"
    options = {"demote": True}

    def calls(self):
        return None


class Profile(Tool):
    """cProfile, which counts and times functions by caller, but records no events."""

    name = "cProfile"
    records_c = True
    file = "trace.prof"

    def __init__(self, folder, library, entries):
        import cProfile

        self.new, self.path = cProfile.Profile, os.path.join(folder, self.file)

    def start(self):
        self.profile = self.new()
        self.profile.enable()

    def stop(self):
        self.profile.disable()

    def save(self):
        self.stop()
        self.profile.dump_stats(self.path)

    def calls(self):
        return sum(entry.callcount for entry in self.profile.getstats() if not isinstance(entry.code, str))


class VizTracer(Tool):
    """viztracer with default options: the function, begin and duration of each call, in a ring in memory; JSON when it is saved."""

    name = "viztracer"
    records_c = True
    file = "trace.json"

    def __init__(self, folder, library, entries):
        import viztracer

        self.path, self.tracer = os.path.join(folder, self.file), None
        self.new = lambda: viztracer.VizTracer(
            output_file=self.path, tracer_entries=entries, ignore_c_function=not self.records_c, verbose=0
        )

    def start(self):
        # Free the memory of the old tracer first.
        self.tracer = None
        self.tracer = self.new()
        self.tracer.start()

    def stop(self):
        self.tracer.stop()

    def save(self):
        self.stop()
        self.tracer.save()

    def calls(self):
        return self.tracer.parse()


class VizTracerWithoutC(VizTracer):
    name = "viztracer, no C"
    records_c = False


class Yappi(Tool):
    """yappi, which counts and times functions by caller, by the wall clock, but records no events."""

    name = "yappi"

    def __init__(self, folder, library, entries):
        import yappi

        self.yappi = yappi
        yappi.set_clock_type("wall")

    def start(self):
        self.yappi.clear_stats()
        self.yappi.start()

    def stop(self):
        self.yappi.stop()

    def calls(self):
        return sum(stat.ncall for stat in self.yappi.get_func_stats())


class EmptyHook(Tool):
    """A native profile function that does nothing: the cost of PyEval_SetProfile itself."""

    name = "empty hook"
    records_c = True

    def __init__(self, folder, library, entries):
        self.set = ctypes.pythonapi.PyEval_SetProfile
        self.set.argtypes, self.set.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        hook = ctypes.CDLL(library).stackweave_bench_empty_hook
        self.hook = ctypes.cast(hook, ctypes.c_void_p)

    def start(self):
        self.set(self.hook, None)

    def stop(self):
        self.set(None, None)


class HooksOnly(Tool):
    """Stackweave's hooks with an observer that does nothing."""

    name = "hooks only"
    words = 0

    def __init__(self, folder, library, entries):
        library = ctypes.PyDLL(library)
        self.install, self.stop = library.stackweave_bench_hooks_start, library.stackweave_bench_hooks_stop
        self.install.restype, self.stop.restype = ctypes.c_char_p, None

    def start(self):
        error = self.install(self.words)
        if error:
            raise RuntimeError(error.decode())


class HooksAndWords(HooksOnly):
    """Stackweave's hooks with an observer that writes 16 bytes for each event to a ring in the cache."""

    name = "hooks, words"
    words = 1


class Torch(Tool):
    """torch.profiler with stacks, which keeps every call in memory, builds a tree when it stops, and JSON when it exports."""

    name = "torch"
    records_c = True
    part = 8
    file = "torch.json"

    def __init__(self, folder, library, entries):
        from torch.profiler import ProfilerActivity, profile

        self.new = lambda: profile(activities=[ProfilerActivity.CPU], with_stack=True)
        self.path = os.path.join(folder, self.file)

    def start(self):
        self.profiler = self.new()
        self.profiler.start()

    def stop(self):
        self.profiler.stop()

    def save(self):
        self.stop()
        self.profiler.export_chrome_trace(self.path)


ALL = (
    Plain,
    Ours,
    OursWithC,
    OursDemoting,
    Profile,
    VizTracer,
    VizTracerWithoutC,
    Yappi,
    EmptyHook,
    HooksOnly,
    HooksAndWords,
    Torch,
)


def named(name):
    return next(tool for tool in ALL if tool.name == name)
