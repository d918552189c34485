"""Exceptions that propagate through many frames."""

import contextlib


class Problem(Exception):
    def __init__(self, depth):
        super().__init__(depth)
        self.depth = depth

    def __str__(self):
        return f"at {self.depth}"


def fall(depth):
    if depth == 0:
        raise Problem(depth)
    fall(depth - 1)


def fall_through_finally(depth, log):
    try:
        if depth == 0:
            raise Problem(depth)
        fall_through_finally(depth - 1, log)
    finally:
        log.append(note(depth))


def note(depth):
    return depth


def raise_again(depth):
    try:
        fall(depth)
    except Problem as problem:
        note(problem.depth)
        raise


def raise_another(depth):
    try:
        fall(depth)
    except Problem as problem:
        raise KeyError(str(problem)) from problem


def fall_through_native(depth):
    if depth == 0:
        return int("no number")
    return sorted([depth], key=lambda value: fall_through_native(value - 1))


class Guard:
    def __init__(self, swallow):
        self.swallow = swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return self.swallow


@contextlib.contextmanager
def caught():
    try:
        yield
    except Problem:
        note(0)


def in_a_loop():
    for number in range(6):
        try:
            if number % 2:
                fall(number)
        except Problem:
            continue
        finally:
            note(number)


def main():
    for function in (fall, raise_again, raise_another, fall_through_native):
        try:
            function(5)
        except (Problem, LookupError, ValueError) as error:
            str(error)
    log = []
    with contextlib.suppress(Problem):
        fall_through_finally(4, log)
    assert log == [0, 1, 2, 3, 4]
    with Guard(swallow=True):
        with Guard(swallow=False):
            fall(3)
    with caught():
        fall(2)
    with contextlib.ExitStack() as stack:
        stack.callback(note, 1)
        stack.enter_context(Guard(swallow=True))
        raise_again(1)
    in_a_loop()
    next(iter([]), None)
    assert getattr(log, "missing", None) is None
