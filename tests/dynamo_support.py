"""Shared by the tests of the Dynamo classes."""

import importlib.util
import itertools
import os


def torch_profiler():
    """Loads torch's own module of the profiler without torch, and returns it; None if it is not installed."""
    torch = importlib.util.find_spec("torch")
    for folder in (torch and torch.submodule_search_locations) or ():
        path = os.path.join(folder, "_dynamo", "dynamo_profiler.py")
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location("_torch_dynamo_profiler", path)
            module = importlib.util.module_from_spec(spec)
            __import__("sys").modules[spec.name] = module
            spec.loader.exec_module(module)
            return module
    return None


class Caller:
    """Simulates calls of functions that exist only as names, and reports them to a state as torch does."""

    def __init__(self, classes, clock=None):
        self.classes = classes
        self.state = classes.DynamoProfilerState()
        self.clock = clock or itertools.count().__next__
        self.callers = []

    def begin(self, name, filename="a.py", line=1):
        state = self.state
        self.callers.append((state.get_current_caller(), state.get_call_stack()))
        state.push(name, filename, line, self.clock())

    def end(self, failed=False):
        entry, now = self.state.pop(), self.clock()
        caller, stack = self.callers.pop()
        if failed:
            return
        total = now - entry.start_time_ns
        timing = self.classes.FunctionTraceTiming(
            func_name=entry.func_name,
            filename=entry.filename,
            firstlineno=entry.firstlineno,
            cumtime_ns=total,
            tottime_ns=total - entry.child_time_ns,
            bytecode_count=20,
            inline_depth=len(stack),
            caller_func_name=caller[0] if caller else None,
            caller_filename=caller[1] if caller else None,
            caller_firstlineno=caller[2] if caller else None,
            is_primitive_call=entry.is_primitive_call,
            call_stack=stack,
        )
        self.state.record_timing(timing)
        self.state.add_child_time(total)

    def tree(self, name, *calls):
        """Simulates a call and its inner calls: names, and tuples of a name and calls."""
        self.begin(name)
        for call in calls:
            self.tree(*(call if isinstance(call, tuple) else (call,)))
        self.end()


def in_ns(row):
    """Returns a row of pstats with its times in whole nanoseconds."""
    return tuple(round(each * 1e9) if isinstance(each, float) else each for each in row)


def table(stats):
    """Returns the table of a pstats.Stats by name, in nanoseconds."""
    return {
        key[2]: (*in_ns(row[:4]), {caller[2]: in_ns(edge) for caller, edge in row[4].items()})
        for key, row in stats.stats.items()
    }
