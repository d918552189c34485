"""Functions around functions."""

import contextlib
import functools


def plain(function):
    return function


def traced(function):
    @functools.wraps(function)
    def wrapper(*arguments, **keywords):
        return function(*arguments, **keywords)

    return wrapper


def repeated(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            return [function(*arguments) for _ in range(times)]

        return wrapper

    return decorate


class Counted:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function, self.calls = function, 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.function(*arguments)


@contextlib.contextmanager
def around():
    yield


def main():
    @plain
    @traced
    @traced
    def add(first, second=1):
        return first + second

    @repeated(3)
    @Counted
    def multiply(first, second):
        return first * second

    @around()
    def managed(value):
        return value

    assert add(1) == 2 and add(1, second=4) == 5
    assert multiply(2, 3) == [6, 6, 6]
    assert multiply.__wrapped__.calls == 3
    assert managed(5) == 5
    assert (lambda *values: values)(*map(lambda value: add(value), range(3))) == (1, 2, 3)
    closures = [lambda bound=number: bound for number in range(4)]
    assert [closure() for closure in closures] == [0, 1, 2, 3]
