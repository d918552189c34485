"""Programs whose calls are recorded: each runs under a mechanism, and again under `sys.setprofile`."""

import asyncio
import collections
import datetime
import functools
import gc
import json
import re
import sys


def recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    fib(7)


def generators():
    def counting(count):
        for number in range(count):
            try:
                yield number
            except KeyError:
                yield -1

    def delegating():
        yield from counting(3)
        return 5

    list(counting(3))
    sent = counting(3)
    next(sent)
    sent.send(1)
    sent.throw(KeyError)
    sent.close()
    unstarted = counting(1)
    unstarted.close()
    thrown = counting(1)
    try:
        thrown.throw(ValueError)
    except ValueError:
        pass
    exhausted = delegating()
    for _ in exhausted:
        pass
    next(exhausted, None)
    return list(number for number in counting(2))


def dropped_generators():
    def waiting():
        try:
            yield 1
        finally:
            pass

    def delegating():
        yield from waiting()

    dropped = delegating()
    next(dropped)
    del dropped
    cycle = [delegating()]
    cycle.append(cycle)
    next(cycle[0])
    del cycle
    gc.collect()


def raising_generators():
    def failing():
        yield 1
        raise LookupError

    def outer():
        yield from failing()

    try:
        list(outer())
    except LookupError:
        pass


def coroutines():
    async def leaf(depth):
        if depth:
            return await leaf(depth - 1)
        await asyncio.sleep(0)
        return 1

    async def produce():
        for number in range(2):
            await asyncio.sleep(0)
            yield number

    async def fail():
        await asyncio.sleep(0)
        raise OSError

    async def main():
        await asyncio.gather(leaf(2), leaf(1))
        async for _ in produce():
            pass
        half = produce()
        async for _ in half:
            break
        await half.aclose()
        try:
            await fail()
        except OSError:
            pass

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()


def awaited_by_hand():
    class Ready:
        def __await__(self):
            yield 1

    async def wait():
        await Ready()
        return 2

    waiting = wait()
    waiting.send(None)
    try:
        waiting.send(None)
    except StopIteration:
        pass
    unstarted = wait()
    unstarted.close()


def exceptions():
    def fail(depth):
        try:
            return fail(depth - 1) if depth else 1 / 0
        finally:
            cleaned()

    def cleaned():
        pass

    try:
        fail(3)
    except ZeroDivisionError:
        cleaned()


def native_callbacks():
    sorted([3, 1, 2], key=lambda value: -value)
    list(map(lambda value: value, [1, 2]))
    functools.reduce(lambda a, b: a + b, [1, 2, 3])
    functools.partial(lambda value: value, 1)()
    functools.lru_cache(lambda value: value)(1)
    max([1, 2], key=lambda value: value)
    eval("(lambda: 1)()")


def classes():
    class Base:
        class_part = [number for number in range(2)]

        def __init__(self, value):
            self.value = value

        def method(self):
            return self.value

        @property
        def double(self):
            return self.value * 2

        @classmethod
        def make(cls):
            return cls(1)

        @staticmethod
        def free():
            return 1

        def __add__(self, other):
            return self.method() + other

        def __getattr__(self, name):
            return 7

        def __del__(self):
            pass

    class Derived(Base):
        def __init__(self):
            super().__init__(3)

    for _ in range(40):
        thing = Derived()
        thing.method(), thing.double, thing + 1, thing.missing
        Base.make(), Base.free()


def comprehensions():
    def inner(value):
        return value

    return [inner(v) for v in range(2)], {inner(v) for v in range(2)}, {inner(v): 1 for v in range(2)}, [
        [inner(w) for w in range(v)] for v in range(3)
    ]


def executed():
    made = {}
    exec("def made(x):\n    return x\nfor i in range(3): made(i)", made)
    exec(compile("made(1)", "<other>", "exec"), made)


def decorated():
    def wrap(function):
        @functools.wraps(function)
        def wrapper(*arguments, **options):
            return function(*arguments, **options)

        return wrapper

    @wrap
    def plain(a, *, b=1):
        cell = a

        def closure():
            return cell, b

        return closure()

    for _ in range(20):
        plain(1)
        plain(1, b=2)


class Reprless:
    def __repr__(self):
        raise AssertionError("must not be called")

    __str__ = __repr__

    def __getattr__(self, name):
        raise AssertionError(("must not be called", name))


class Items(list, Reprless):
    pass


def native_calls():
    items = Items([2, 1])
    items.append(3)
    bound = items.append
    bound(4)
    list.append(items, 5)
    len(items)
    dict.fromkeys("ab")
    "a".upper()
    b"a".hex()
    try:
        items.index(9)
    except ValueError:
        pass
    sys.getrecursionlimit()
    functools.reduce(len_of_both, [[], []])


def kinds_of_native_calls():
    class Empty:
        pass

    object.__new__(Empty)
    int.from_bytes(b"a", "big")
    dict.fromkeys([1])
    str.maketrans("a", "b")
    collections.deque().append(1)
    append = [].append
    append(1)
    isinstance(1, int)
    datetime.datetime.now()
    "-".join("ab")
    {1}.add(2)
    re.compile("a(b|c)*d").match("abcd")
    json.loads('{"a": [1, 2.5, null]}')
    try:
        [].pop()
    except IndexError:
        pass
    try:
        list.append()
    except TypeError:
        pass


def len_of_both(one, other):
    return [len(one), len(other)]


NATIVE_CALLS = [
    "c_call list.append native_calls",
    "c_return - native_calls",
    "c_call list.append native_calls",
    "c_return - native_calls",
    "c_call list.append native_calls",
    "c_return - native_calls",
    "c_call builtins.len native_calls",
    "c_return - native_calls",
    "c_call dict.fromkeys native_calls",
    "c_return - native_calls",
    "c_call str.upper native_calls",
    "c_return - native_calls",
    "c_call bytes.hex native_calls",
    "c_return - native_calls",
    "c_call list.index native_calls",
    "c_raise - native_calls",
    "c_call sys.getrecursionlimit native_calls",
    "c_return - native_calls",
    "c_call _functools.reduce native_calls",
    "c_call builtins.len len_of_both",
    "c_return - len_of_both",
    "c_call builtins.len len_of_both",
    "c_return - len_of_both",
    "c_return - native_calls",
]

PROGRAMS = [
    recursion,
    generators,
    dropped_generators,
    raising_generators,
    coroutines,
    awaited_by_hand,
    exceptions,
    native_callbacks,
    classes,
    comprehensions,
    executed,
    decorated,
]
