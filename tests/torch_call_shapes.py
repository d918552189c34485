"""Ways to call a Python function. Each calls `take`, which captures a stack, and returns its result."""

import asyncio
import contextlib
import functools
import threading


def nested(take):
    def inner():
        def innermost():
            return take()

        return innermost()

    return inner()


def method(take):
    class Model:
        def __call__(self):
            return self.run()

        def run(self):
            return self.taken

        @property
        def taken(self):
            return take()

    return Model()()


def generator(take):
    def numbers():
        yield 1
        yield take()

    return list(numbers())[1]


def delegated(take):
    def inner():
        yield take()

    def outer():
        yield from inner()

    return next(outer())


def comprehension(take):
    return [[take() for _ in range(1)] for _ in range(2)][1][0]


def lambdas(take):
    return (lambda call: (lambda: call())())(take)


def executed(take):
    names = {"take": take}
    exec("def run():\n    return take()\n\ntaken = run()", names)
    return names["taken"]


def decorated(take):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            return function(*arguments)

        return wrapper

    return decorate(decorate(take))()


def partial(take):
    return functools.partial(functools.partial(take))()


def sorting(take):
    found = []
    sorted([1], key=lambda _: found.append(take()))
    return found[0]


def thread(take):
    found = []
    running = threading.Thread(target=lambda: found.append(take()))
    running.start()
    running.join()
    return found[0]


def coroutine(take):
    async def inner():
        return take()

    async def outer():
        return await inner()

    return asyncio.run(outer())


def context_manager(take):
    @contextlib.contextmanager
    def entered():
        yield take()

    with entered() as taken:
        return taken


def class_body(take):
    class Taken:
        taken = take()

    return Taken.taken


def recursion(take, depth=30):
    return recursion(take, depth - 1) if depth else take()


def many_lines(take):
    return (lambda *arguments: arguments[1])(
        1,
        take(),
    )


def in_except(take):
    try:
        raise ValueError
    except ValueError:
        return take()


SHAPES = (
    nested,
    method,
    generator,
    delegated,
    comprehension,
    lambdas,
    executed,
    decorated,
    partial,
    sorting,
    thread,
    coroutine,
    context_manager,
    class_body,
    recursion,
    many_lines,
    in_except,
)
