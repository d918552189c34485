"""Mechanisms together with other observers of calls, and hooks that are installed and removed at any moment."""

import cProfile
import gc
import os
import pstats
import sys
import threading
import types

import call_programs
import support
from call_cases import CHOSEN, ENTERING, EVAL_HOOK, MONITORING, NAMES, PROFILE_SLOT, name, run, recorded, take_events

stop = support.held.calls_stop
begin = support.held.calls_start


def refused(mechanism, c_calls=False):
    fault = begin(mechanism, c_calls)
    if fault is None:
        stop()
        raise AssertionError("the mechanism was not refused")
    return fault.decode()


def of(events, function):
    return [event[0] for event in events if event[1] == name(function.__code__)]


def called():
    return 1


def calls_twice():
    called()
    called()


class Sequence:
    def __getitem__(self, index):
        return index


def use_sequence(times=3):
    for _ in range(times):
        Sequence()[0]


use_sequence(100)
# Early releases of 3.11 do not call the frame evaluation function for this.
MISSES_SOME = of(recorded(use_sequence, CHOSEN), Sequence.__getitem__) != ["call", "return"] * 3


def case_the_mechanism_is_chosen():
    assert begin(0, False) is None
    mechanism = support.held.calls_mechanism().decode()
    if MISSES_SOME:
        reason = "this release of Python runs some __getitem__ methods past the frame evaluation hook"
        assert mechanism == f"{NAMES[PROFILE_SLOT]} ({reason})", mechanism
    else:
        assert mechanism == NAMES[CHOSEN], mechanism
    assert refused(0) == "calls are traced already, and only one trace can run at a time"
    stop()
    assert stop() == 2**64 - 1  # nothing is running
    other = EVAL_HOOK if CHOSEN == MONITORING else MONITORING
    version = f"Python 3.{sys.version_info[1]} can't trace calls by {NAMES[other]}"
    assert refused(other) == version
    assert begin(0, True) is None
    expected = MONITORING if CHOSEN == MONITORING else PROFILE_SLOT
    assert support.held.calls_mechanism().decode() == NAMES[expected]
    stop()


def case_counts_equal_those_of_cprofile(mechanism):
    for program in call_programs.PROGRAMS:
        program()  # what it does only once is done now
        profiler = cProfile.Profile(builtins=False)
        profiler.enable()
        run(program)
        profiler.disable()
        wanted = {}
        for entry in profiler.getstats():
            if isinstance(entry.code, str):
                continue  # the end of the profile itself
            is_missed = mechanism == EVAL_HOOK and MISSES_SOME and entry.code.co_name == "__getitem__"
            if entry.code is not run.__code__ and not is_missed:
                wanted[entry.code.co_name] = wanted.get(entry.code.co_name, 0) + entry.callcount
        found = {}
        for what, function, *_ in recorded(program, mechanism):
            function = function.rsplit(".", 1)[-1]
            is_missed = mechanism == EVAL_HOOK and MISSES_SOME and function == "__getitem__"
            if what in ENTERING and not is_missed:
                found[function] = found.get(function, 0) + 1
        assert found == wanted, (program.__name__, found, wanted)


def case_native_counts_equal_those_of_cprofile(mechanism):
    if mechanism == EVAL_HOOK:
        return
    for program in [*call_programs.PROGRAMS, call_programs.native_calls, call_programs.kinds_of_native_calls]:
        program()
        profiler = cProfile.Profile()
        profiler.enable()
        run(program)
        profiler.disable()
        native = [entry for entry in profiler.getstats() if isinstance(entry.code, str)]
        wanted = sum(entry.callcount for entry in native if "Profiler" not in entry.code)
        names = [function for what, function, *_ in recorded(program, mechanism, True) if what == "c_call"]
        assert len(names) == wanted, (program.__name__, len(names), wanted)
    for named in KINDS_OF_NATIVE_NAMES:
        assert named in names, (named, names)
    assert not any("0x" in each or " " in each for each in names), names


def case_bound_methods_of_native_functions():
    """Records bound methods, which cProfile omits on some versions."""
    if CHOSEN == MONITORING:
        bound = types.MethodType(len, [1])
        found = [event[:2] for event in recorded(lambda: bound(), MONITORING, True) if event[0].startswith("c_")]
        assert found == [["c_call", "builtins.len"], ["c_return", "-"]], found


KINDS_OF_NATIVE_NAMES = """
    __new__ int.from_bytes dict.fromkeys str.maketrans collections.deque.append list.append builtins.isinstance
    datetime.datetime.now str.join list.pop set.add re.Pattern.match
""".split()


def case_nothing_is_allocated(mechanism):
    requests, stamps = support.held.memory_requests, support.held.stamps
    assert support.held.stamps_start(mechanism, mechanism != EVAL_HOOK) is None
    try:
        call_programs.classes()
        before, events = requests(), stamps()
        for _ in range(3):
            call_programs.classes()
            call_programs.generators()
            call_programs.native_calls()
        requested, recorded_events = requests() - before, stamps() - events
    finally:
        stop()
    assert recorded_events > 2000 and requested == 0, (recorded_events, requested)


def case_the_thread_state_is_read_directly():
    if CHOSEN == MONITORING:
        recorded(calls_twice)
        assert support.held.state_is_read_directly()


def case_threads_old_and_new(mechanism):
    ready, go, done = threading.Event(), threading.Event(), []

    def old():
        ready.set()
        go.wait()
        calls_twice()
        done.append(threading.get_ident())

    def new():
        calls_twice()
        done.append(threading.get_ident())

    thread = threading.Thread(target=old)
    thread.start()
    ready.wait()
    take_events()
    assert begin(mechanism, False) is None
    later = [threading.Thread(target=new) for _ in range(3)]
    for each in later:
        each.start()
    go.set()
    for each in [thread, *later]:
        each.join()
    stop()
    by_thread = {}
    for who, what, function, caller, line in take_events():
        if function in ("calls_twice", "called"):
            by_thread.setdefault(who, []).append((what, function, caller))
    assert len(done) == len(by_thread) == 4, by_thread
    for events in by_thread.values():
        assert [event[:2] for event in events] == [
            ("call", "calls_twice"),
            ("call", "called"),
            ("return", "called"),
            ("call", "called"),
            ("return", "called"),
            ("return", "calls_twice"),
        ], events
        assert events[1][2] == "calls_twice", events
    assert threading.getprofile() is None and sys.getprofile() is None


def case_greenlets(mechanism):
    try:
        import greenlet
    except ImportError:
        return

    def ping():
        for _ in range(3):
            called()
            other.switch()

    def pong():
        while True:
            called()
            one.switch()

    one, other = greenlet.greenlet(ping), greenlet.greenlet(pong)
    events = recorded(lambda: one.switch(), mechanism)
    callers = [event[2].rsplit(".")[-1] for event in events if event[:2] == ["call", "called"]]
    assert callers == ["ping", "pong"] * 3, events


def case_ten_thousand_times(mechanism):
    take_events()
    for number in range(10000):
        assert begin(mechanism, number % 2 == 0 and mechanism != EVAL_HOOK) is None
        if number % 100 == 0:
            called()
        stop()
    events = [event for event in take_events() if event[2] == "called"]
    assert [event[1] for event in events] == ["call", "return"] * 100, len(events)


def case_stopped_and_started_inside_calls(mechanism):
    def stopping():
        called()
        stop()
        called()

    def starting():
        called()
        assert begin(mechanism, False) is None
        called()

    def generate():
        yield called()
        stop()
        yield called()
        assert begin(mechanism, False) is None
        yield called()

    take_events()
    assert begin(mechanism, False) is None
    stopping()
    starting()
    for _ in generate():
        pass
    stop()
    events = [event[1:] for event in take_events()]
    assert of(events, called) == ["call", "return"] * 4, events
    assert of(events, stopping) == ["call"], events
    assert of(events, starting) in ([], ["return"]), events


def case_with_a_trace_function(mechanism):
    lines = []

    def trace(frame, event, argument):
        lines.append((frame.f_code.co_name, event))
        return trace

    before = recorded(calls_twice, mechanism)
    sys.settrace(trace)
    try:
        traced = recorded(calls_twice, mechanism)
    finally:
        sys.settrace(None)
    assert traced == before, (traced, before)
    assert ("called", "call") in lines and ("called", "line") in lines and ("called", "return") in lines


def case_with_cprofile(mechanism):
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        if mechanism == PROFILE_SLOT and sys.version_info < (3, 12):
            fault = refused(mechanism)
            assert fault == "another profile function is set on this thread: Profile; stop it first", fault
            return
        events = recorded(calls_twice, mechanism)
    finally:
        profiler.disable()
    assert of(events, called) == ["call", "return"] * 2
    stats = pstats.Stats(profiler).stats
    assert [stat[1] for (_, _, function), stat in stats.items() if function == "called"] == [2]


def case_with_another_profile_function(mechanism):
    seen = []

    def profile(frame, event, argument):
        seen.append((frame.f_code.co_name, event))

    sys.setprofile(profile)
    try:
        if mechanism == PROFILE_SLOT:
            fault = refused(mechanism)
            function = f"{__name__}.{profile.__qualname__}"
            assert fault == f"another profile function is set on this thread: {function}; stop it first", fault
            assert sys.getprofile() is profile
        else:
            assert of(recorded(calls_twice, mechanism), called) == ["call", "return"] * 2
            assert ("called", "call") in seen
    finally:
        sys.setprofile(None)


def case_the_profile_function_of_new_threads_is_restored(mechanism):
    def profile(frame, event, argument):
        pass

    threading.setprofile(profile)
    try:
        recorded(calls_twice, mechanism)
        assert threading.getprofile() is profile
    finally:
        threading.setprofile(None)


def case_all_tool_ids_taken():
    if CHOSEN != MONITORING:
        return
    monitoring = sys.monitoring
    for tool in range(6):
        monitoring.use_tool_id(tool, f"tool {tool}")
    try:
        names = ", ".join(f"tool {tool}" for tool in (3, 4, 5, 1, 0, 2))
        reason = f"every tool id of sys.monitoring is taken: {names}"
        assert refused(MONITORING) == reason
        assert begin(0, False) is None
        assert support.held.calls_mechanism().decode() == f"{NAMES[PROFILE_SLOT]} ({reason})"
        stop()
        monitoring.free_tool_id(5)
        assert begin(0, False) is None
        assert monitoring.get_tool(5) == "stackweave"
        stop()
    finally:
        for tool in range(6):
            monitoring.free_tool_id(tool)


def case_with_another_tool():
    if CHOSEN != MONITORING:
        return
    monitoring, seen = sys.monitoring, []
    monitoring.use_tool_id(3, "another")
    monitoring.register_callback(3, monitoring.events.PY_START, lambda code, offset: seen.append(code.co_name))
    monitoring.set_events(3, monitoring.events.PY_START)
    try:
        assert of(recorded(calls_twice), called) == ["call", "return"] * 2
        calls_twice()
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)
    assert seen.count("called") == 4, seen


def case_disabled_events_are_enabled_again(mechanism):
    take_events()
    assert begin(mechanism, False) is None
    support.held.calls_disable(True)
    try:
        for _ in range(5):
            calls_twice()
        once = [event[1] for event in take_events() if event[2] == "called"]
        support.held.calls_disable(False)
        calls_twice()
    finally:
        support.held.calls_disable(False)
        stop()
    again = [event[1] for event in take_events() if event[2] == "called"]
    assert once == ["call", "return"] * (1 if mechanism == MONITORING else 10), once
    assert again == ["call", "return"] * 2, again


def case_disabled_exceptions(mechanism):
    def fails():
        raise KeyError

    def generate():
        try:
            yield 1
        except KeyError:
            yield 2

    take_events()
    assert begin(mechanism, False) is None
    support.held.calls_disable(True)
    try:
        for _ in range(3):
            thrown = generate()
            next(thrown)
            thrown.throw(KeyError)
            try:
                fails()
            except KeyError:
                pass
        assert of([event[1:] for event in take_events()], fails)[:2] == ["call", "raise"]
    finally:
        support.held.calls_disable(False)
        stop()


def dive(depth):
    return dive(depth - 1) if depth else called()


def case_deep_recursion(mechanism):
    """Asserts that a recursion that works without hooks on this version's usual stack works with them."""
    if sys.version_info < (3, 11):
        return
    depth, limit = 40000, sys.getrecursionlimit()
    sys.setrecursionlimit(50000)
    try:
        dive(depth)
        fault = support.held.stamps_start(mechanism, False)
        assert fault is None, fault
        dive(depth)
        bypassed = stop()
        assert (bypassed > 0) == (mechanism == EVAL_HOOK), bypassed
        assert begin(mechanism, False) is None
        take_events()
        calls_twice()
        stop()
        assert of([event[1:] for event in take_events()], called) == ["call", "return"] * 2
    finally:
        sys.setrecursionlimit(limit)


def case_small_stacks(mechanism):
    if sys.version_info < (3, 11):
        return
    done, before = [], threading.stack_size(128 * 1024)
    try:
        assert support.held.stamps_start(mechanism, False) is None
        thread = threading.Thread(target=lambda: done.append(dive(700)))
        thread.start()
        thread.join()
        stop()
    finally:
        threading.stack_size(before)
    assert done == [1]


def case_stopped_while_stepped_aside():
    if CHOSEN != EVAL_HOOK or sys.version_info < (3, 11):
        return
    limit = sys.getrecursionlimit()

    def deep(depth):
        if depth:
            return deep(depth - 1)
        assert stop() > 0
        assert begin(EVAL_HOOK, False) is None
        take_events()
        called()
        return [event[1] for event in take_events() if event[2] == "called"]

    sys.setrecursionlimit(50000)
    try:
        assert support.held.stamps_start(EVAL_HOOK, False) is None
        assert stop() == 0
        assert begin(EVAL_HOOK, False) is None
        deep(40000)
        take_events()
        calls_twice()
        stop()
        assert [event[1] for event in take_events() if event[2] == "called"] == ["call", "return"] * 2
    finally:
        sys.setrecursionlimit(limit)


def case_another_evaluation_function():
    """Installs an evaluation function such as Dynamo's before ours, after it, and leaves it above ours."""
    if CHOSEN != EVAL_HOOK:
        return
    other = support.held.other_hook
    for order in "before", "after":
        take_events()
        if order == "before":
            other(True)
        assert begin(EVAL_HOOK, False) is None
        if order == "after":
            other(True)
        frames = support.held.other_frames()
        calls_twice()
        assert support.held.other_frames() - frames == 3
        if order == "after":
            stop()
            calls_twice()
            assert begin(EVAL_HOOK, False) is None
            calls_twice()
            other(False)
            calls_twice()
            stop()
        else:
            stop()
            frames = support.held.other_frames()
            calls_twice()
            assert support.held.other_frames() - frames == 3
            other(False)
        events = [event[1] for event in take_events() if event[2] == "called"]
        assert events == ["call", "return"] * (2 if order == "before" else 6), (order, events)
    frames = support.held.other_frames()
    calls_twice()
    assert support.held.other_frames() == frames and take_events() == []


def case_sub_interpreters(mechanism):
    take_events()
    assert begin(mechanism, False) is None
    called()
    support.in_sub_interpreter("def inside(): pass\nfor _ in range(3): inside()", called)
    called()
    stop()
    events = [event[1] for event in take_events() if event[2] == "called"]
    assert events == ["call", "return"] * 3, events


def case_fork(mechanism):
    take_events()
    assert begin(mechanism, False) is None
    child = os.fork()
    if not child:
        take_events()
        calls_twice()
        events = [event[1] for event in take_events() if event[2] == "called"]
        stop()
        take_events()
        called()
        os._exit(0 if events == ["call", "return"] * 2 and not take_events() else 1)
    assert os.waitpid(child, 0)[1] == 0
    stop()


def case_collections_inside_calls(mechanism):
    class Closing:
        def __del__(self):
            called()

    def make():
        cycle = Closing()
        cycle.itself = cycle

    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        events = recorded(lambda: [make() for _ in range(50)], mechanism)
    finally:
        gc.set_threshold(*threshold)
    assert of(events, Closing.__del__).count("call") > 10
    depth = 0
    for what, *_ in events:
        depth += 1 if what == "call" else -1
        assert depth >= 0
    assert depth == 0
