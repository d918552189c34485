"""Tracers, each started and stopped around a program.

`calls` returns how many calls of Python functions the tracer saw; `None` if it can't say. `records_c`: calls of native functions
are among what it records.
"""

import ctypes
import os


class Tool:
    records_c = False
    # What part of a program's repetitions it is given: less where each event costs much.
    part = 1
    file = None

    def __init__(self, folder, library, entries):
        pass

    def start(self):
        pass

    def stop(self):
        pass

    def save(self):
        """From the last event to the complete file."""
        self.stop()

    def calls(self):
        return None


class Plain(Tool):
    """No tracer: what two runs of the same program differ by."""

    name = "plain"


class Ours(Tool):
    """Every call and return, in the order of time, with the caller's line, in a file."""

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
        return sum(calls for _, calls, _, _, _ in self.trace.stats().stats.values())


class OursWithC(Ours):
    name = "ours, C calls"
    records_c = True
    options = {"c_calls": True}


class OursDemoting(Ours):
    """Functions that prove to be hot and tiny are no longer recorded."""

    name = "ours, demotion"
    options = {"demote": True}

    def calls(self):
        return None


class Profile(Tool):
    """cProfile: counts and times of functions by caller, and no events."""

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
    """viztracer by default: a call's function, begin and length, in a ring in memory; JSON when it is saved."""

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
        # The old one's memory is given back first.
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
    """yappi: counts and times of functions by caller, and no events. By the wall clock, as all others."""

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
    """A native profile function that does nothing: what PyEval_SetProfile itself costs."""

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
    """Our hooks, which tell somebody who does nothing."""

    name = "hooks only"
    words = 0

    def __init__(self, folder, library, entries):
        library = ctypes.PyDLL(library)
        self.install, self.stop = library.stackweave_bench_hooks_start, library.stackweave_bench_hooks_stop
        self.install.restype, self.stop.restype = ctypes.c_char_p, None

    def start(self):
        why = self.install(self.words)
        if why:
            raise RuntimeError(why.decode())


class HooksAndWords(HooksOnly):
    """The same, and 16 bytes for each event to a ring in the cache."""

    name = "hooks, words"
    words = 1


class Torch(Tool):
    """torch.profiler with stacks: every call in memory; a tree when it is stopped, JSON when it is exported."""

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
