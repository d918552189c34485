"""torch's Dynamo profiler, which is a separate file, and the functions that record phases in it."""

import importlib.util
import sys
import time


def load(path):
    """Loads torch's profiler without torch. Returns None if there is none."""
    if path == "none":
        return None
    spec = importlib.util.spec_from_file_location("dynamo_profiler", path)
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look up their module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def feeder(state, timing_type):
    """Returns functions that record the start and end of a phase, as torch's profile_inline_call does."""
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
    """Makes the interpreter use memory that is mapped already, because fresh pages would cost more than a pair.

    The caller must keep the result.
    """
    blocks = [bytes(400) for _ in range(200_000)]
    return blocks[::200]
