"""Compares what each mechanism records with what Python's own `sys.setprofile` reports of the same program."""

import sys
import threading

import call_programs
import support

MONITORING, EVAL_HOOK, PROFILE_SLOT = 1, 2, 3
NAMES = {MONITORING: "sys.monitoring", EVAL_HOOK: "the frame evaluation hook", PROFILE_SLOT: "a profile function"}
MECHANISMS = [MONITORING, PROFILE_SLOT] if sys.version_info >= (3, 12) else [EVAL_HOOK, PROFILE_SLOT]
CHOSEN = MECHANISMS[0]


def take_events():
    """Returns the events since the last call: thread, event, name, name of the caller, line of the caller."""
    events = []
    for line in support.held.calls_take().decode().splitlines():
        thread, what, rest = line.split(" ", 2)
        name, caller, number = rest.rsplit(" ", 2)
        events.append((thread, what, name, caller, int(number)))
    return events


def run(program):
    program()


def recorded(program, mechanism=0, c_calls=False):
    take_events()
    fault = support.held.calls_start(mechanism, c_calls)
    try:
        assert fault is None, fault
        run(program)
    finally:
        support.held.calls_stop()
    return within([event for _, *event in take_events()])


def within(events):
    """Returns the events without the call that surrounds the program."""
    assert events[0][1] == events[-1][1] == "run", (events[0], events[-1])
    return events[1:-1]


def name(code):
    return getattr(code, "co_qualname", code.co_name)


def profiled(program):
    events = []

    def profile(frame, event, argument):
        if event in ("call", "return"):
            back = frame.f_back
            events.append([event, name(frame.f_code), name(back.f_code), back.f_lineno])

    sys.setprofile(profile)
    try:
        run(program)
    finally:
        sys.setprofile(None)
    return within(events)


ENTERING = {"call": "call", "resume": "call", "throw": "call"}


def plainly(events):
    return [[ENTERING.get(what, "return"), *rest] for what, *rest in events]


def difference(found, wanted):
    for index, (one, other) in enumerate(zip(found, wanted)):
        if one != other:
            return index, one, other, wanted[max(index - 4, 0) : index]
    return len(found), len(wanted), (found + wanted)[min(len(found), len(wanted)) :][:5]


def case_events_equal_those_of_a_profile_function(mechanism):
    for program in call_programs.PROGRAMS:
        if program is call_programs.dropped_generators and sys.version_info < (3, 11):
            continue  # a profile function in Python keeps local variables alive there
        program()
        found, wanted = plainly(recorded(program, mechanism)), profiled(program)
        assert found == wanted, (program.__name__, difference(found, wanted))
        assert len(found) > 4, (program.__name__, found)


def case_every_enter_event_has_its_leave_event(mechanism):
    for program in call_programs.PROGRAMS:
        stack = []
        for what, called, *_ in recorded(program, mechanism):
            if what in ENTERING:
                stack.append(called)
            else:
                assert stack and stack.pop() == called, (program.__name__, what, called)
        assert not stack, (program.__name__, stack)


def squares(count):
    for number in range(count):
        try:
            yield number * number
        except KeyError:
            pass


def drive():
    made = squares(3)
    next(made)
    made.send(None)
    made.throw(KeyError)
    next(made, None)
    list(squares(1))
    failed = squares(1)
    next(failed)
    try:
        failed.throw(ValueError)
    except ValueError:
        pass


THROW = {PROFILE_SLOT: "resume"}


def case_generators_by_hand(mechanism):
    line = drive.__code__.co_firstlineno
    throw = THROW.get(mechanism, "throw")
    expected = [
        ["call", "drive", "run", None],
        ["call", "squares", "drive", line + 2],
        ["yield", "squares", "drive", line + 2],
        ["resume", "squares", "drive", line + 3],
        ["yield", "squares", "drive", line + 3],
        [throw, "squares", "drive", line + 4],
        ["yield", "squares", "drive", line + 4],
        ["resume", "squares", "drive", line + 5],
        ["return", "squares", "drive", line + 5],
        ["call", "squares", "drive", line + 6],
        ["yield", "squares", "drive", line + 6],
        ["resume", "squares", "drive", line + 6],
        ["return", "squares", "drive", line + 6],
        ["call", "squares", "drive", line + 8],
        ["yield", "squares", "drive", line + 8],
        [throw, "squares", "drive", line + 10],
        ["raise", "squares", "drive", line + 10],
        ["return", "drive", "run", None],
    ]
    found = recorded(drive, mechanism)
    found[0][3] = found[-1][3] = None
    assert found == expected, difference(found, expected)


def fails():
    inner_fails()


def inner_fails():
    raise KeyError


def case_exceptions_by_hand(mechanism):
    def run():
        try:
            fails()
        except KeyError:
            pass

    found = [event[:2] for event in recorded(run, mechanism)]
    run = name(run.__code__)
    assert found == [
        ["call", run],
        ["call", "fails"],
        ["call", "inner_fails"],
        ["raise", "inner_fails"],
        ["raise", "fails"],
        ["return", run],
    ], found


def case_native_calls(mechanism):
    if mechanism == EVAL_HOOK:
        fault = support.held.calls_start(EVAL_HOOK, True)
        assert fault == b"native functions can't be traced by the frame evaluation hook", fault
        return
    found = [event[:3] for event in recorded(call_programs.native_calls, mechanism, True) if event[0].startswith("c_")]
    found = [" ".join(event) for event in found]
    assert found == call_programs.NATIVE_CALLS, difference(found, call_programs.NATIVE_CALLS)


def case_native_calls_are_not_recorded_unless_requested(mechanism):
    found = recorded(call_programs.native_calls, mechanism)
    assert {event[0] for event in found} == {"call", "return"}, found


def case_frames_on_the_stack(mechanism):
    def generate():
        yield inspect()

    def inspect(thread=0):
        frame, wanted = sys._getframe(), []
        while frame is not None:
            code = frame.f_code
            module = frame.f_globals.get("__name__", "-")
            wanted.append([id(code), frame.f_lasti, code.co_flags, module])
            frame = frame.f_back
        found = [line.split() for line in support.held.calls_frames(thread).decode().splitlines()]
        found = [[int(code), int(lasti), int(flags), module] for code, lasti, flags, module in found]
        found[0][1] = wanted[0][1]  # the frame has run further since
        assert found == wanted, (found, wanted)
        return len(found)

    class Made:
        def __init__(self):
            inspect()

    list(map(lambda _: inspect(), [1]))
    list(generate())
    for _ in range(30):
        Made()
    exec("inspect()", {"inspect": inspect})
    assert inspect(threading.get_ident()) > 3


def case_the_recursion_limit_is_the_same(mechanism):
    def dive(depth=0):
        nonlocal deepest
        deepest = depth
        dive(depth + 1)

    def run():
        nonlocal deepest
        deepest = 0
        try:
            dive()
        except RecursionError:
            pass
        return deepest

    deepest, found = 0, []
    run()
    plain = run()
    events = recorded(lambda: found.append(run()), mechanism)
    assert found == [plain - len("recorded run lambda".split())], (found, plain)
    # A refused call is not recorded.
    dives = [what for what, called, *_ in events if called == name(dive.__code__)]
    assert dives.count("call") == found[0] + 1 == dives.count("raise"), (dives.count("call"), found)
