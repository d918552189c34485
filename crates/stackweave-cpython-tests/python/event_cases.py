"""Python code that runs at an event: an exception, the end of an object, an event of a trace, a new thread."""

import gc
import sys
import threading

import walk_cases
from support import check


def case_exceptions_in_flight():
    class Context:
        def __enter__(self):
            check("enter")

        def __exit__(self, *_):
            return bool(check("exit"))

    def fail(depth):
        try:
            return fail(depth - 1) if depth else 1 / 0
        finally:
            check("finally")

    try:
        fail(10)
    except ZeroDivisionError:
        check("except")
    with Context():
        raise KeyError


class Closing:
    def __del__(self):
        check("del")


def case_del():
    Closing()
    cycle = Closing()
    cycle.itself = cycle
    del cycle
    gc.collect()
    for many in range(300):  # a collection while the cells of a frame are created
        cycle = Closing()
        cycle.itself = cycle
        del cycle
        (lambda a, b, c, d: lambda: (a, b, c, d))(many, [many], {many: []}, [[]])
    gc.collect()


def case_trace_functions():
    def trace(frame, event, argument):
        sys.settrace(None)
        check("trace")
        return None

    sys.settrace(trace)
    (lambda: None)()
    sys.settrace(None)


def case_threads():
    faults = []

    def run(number):
        try:
            for _ in range(20):
                walk_cases.case_generators()
                walk_cases.case_plain_calls()
        except BaseException as fault:
            faults.append((number, fault))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults
