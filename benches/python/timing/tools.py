"""torch's profiler of Dynamo, which is a file of its own, and how it is told of phases."""

import importlib.util
import sys
import time


def load(path):
    """torch's profiler without torch, or None."""
    if path == "none":
        return None
    spec = importlib.util.spec_from_file_location("dynamo_profiler", path)
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look for their module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def feeder(state, timing_type):
    """begin and end of one phase, as torch's profile_inline_call tells them to its state."""
    now = time.time_ns
    get_current_caller, get_call_stack = state.get_current_caller, state.get_call_stack
    push, pop = state.push, state.pop
    record_timing, add_child_time = state.record_timing, state.add_child_time
    callers = []

    def begin(name, filename, line):
        callers.append((get_current_caller(), get_call_stack()))
        push(name, filename, line, now())

    def end():
        entry, ended = pop(), now()
        caller, stack = callers.pop()
        took = ended - entry.start_time_ns
        timing = timing_type(
            func_name=entry.func_name,
            filename=entry.filename,
            firstlineno=entry.firstlineno,
            cumtime_ns=took,
            tottime_ns=took - entry.child_time_ns,
            bytecode_count=100,
            inline_depth=1,
            caller_func_name=caller[0] if caller else None,
            caller_filename=caller[1] if caller else None,
            caller_firstlineno=caller[2] if caller else None,
            is_primitive_call=entry.is_primitive_call,
            call_stack=stack,
        )
        record_timing(timing)
        add_child_time(took)

    return begin, end


def warm_memory():
    """Leaves the interpreter with memory that it has used before: fresh pages would cost more than a pair.

    Keep what this returns.
    """
    blocks = [bytes(400) for _ in range(200_000)]
    return blocks[::200]
