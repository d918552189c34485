"""Every way to get from one Python frame to another, walked and compared."""

import asyncio
import ctypes
import functools
import pickle
import sys
import traceback

import support
from support import check, entries

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def case_plain_calls():
    def inner():
        return check("plain")

    frames, expected = inner()
    names = entries(frames, expected)
    if not support.EACH_FRAME_IS_ENTERED:
        assert "inner" not in names and "case_plain_calls" not in names, names


def case_names_and_lines():
    frames, expected = check("names")
    frame = sys._getframe()
    for record in frames[1:]:
        name, qualname, filename, first = support.held.describe(ctypes.c_uint64(record.code)).decode().split("\n")
        code = frame.f_code
        assert (name, filename, int(first)) == (code.co_name, code.co_filename, code.co_firstlineno)
        assert qualname == getattr(code, "co_qualname", "-"), (qualname, code)
        frame = frame.f_back
    summary = traceback.extract_stack()
    assert [entry.name for entry in reversed(summary)] == [name for _, _, _, name in expected[1:]]


def case_other_alphabets():
    for name in "caf\u00e9", "\u0441\u0442\u0435\u043a", "\U00010400":
        code = compile("0", f"<{name}>", "eval")
        assert support.held.describe(ctypes.c_uint64(id(code))).decode().split("\n")[2] == f"<{name}>"


def case_deep_recursion():
    def recurse(depth):
        return recurse(depth - 1) if depth else check("recursion")

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(8000)
    try:
        for depth in 1, 20, 500, 5000:
            recurse(depth)
    finally:
        sys.setrecursionlimit(limit)


def case_depth_limit():
    def recurse(depth):
        return recurse(depth - 1) if depth else support.held.frames("walk", 10)

    frames, stop = recurse(30)
    assert (len(frames), stop) == (10, "depth limit reached")
    assert support.held.frames("walk", 0) == ([], "depth limit reached")
    expected = support.truth(sys._getframe())
    frames, stop = support.held.frames("walk", len(expected) + 1)  # `frames` itself is one more
    assert (len(frames), stop) == (len(expected) + 1, "end of stack")


def case_generators():
    def inner(count):
        for _ in range(count):
            yield check("generator")

    def outer():
        yield from inner(3)
        yield from (check("generator expression") for _ in range(2))

    for _ in outer():
        check("between")
    list(outer())
    suspended = inner(2)
    next(suspended)
    suspended.close()
    thrown = inner(1)
    next(thrown)
    try:
        thrown.throw(KeyError)
    except KeyError:
        check("after throw")


def case_coroutines():
    async def leaf(depth):
        if depth:
            return await leaf(depth - 1)
        check("coroutine")
        await asyncio.sleep(0)
        return check("coroutine resumed")

    async def produce():
        for _ in range(2):
            check("async generator")
            yield 1

    async def main():
        await asyncio.gather(leaf(4), leaf(2))
        async for _ in produce():
            check("async for")

    asyncio.run(main())


class Made:
    def __init__(self, what):
        self.made = check(what)


class Child(Made):
    def __init__(self):
        super().__init__("child")


def case_hot_instantiation():
    for _ in range(100):
        Made("instance")
    for _ in range(100):
        Child()


def case_hot_loops():
    class Attributes:
        def __getattr__(self, name):
            return check("getattr")

        @property
        def value(self):
            return check("property")

        def __getitem__(self, index):
            return check("getitem")

        def __add__(self, other):
            return check("add")

        def __call__(self):
            return check("call")

    thing = Attributes()
    for _ in range(60):
        thing.missing, thing.value, thing[0], thing + 1, thing()
        (lambda cell: lambda: (cell, check("closure")))(1)()


def case_native_callbacks():
    frames, expected = list(map(check, ["map"]))[0]
    assert entries(frames, expected)[0] == "check"
    sorted([3, 1, 2], key=lambda value: (check("sorted"), value)[1])
    functools.reduce(lambda a, b: check("reduce") and b, [1, 2, 3])
    functools.partial(check, "partial")()
    functools.lru_cache(lambda: check("cache"))()
    max([1, 2], key=lambda value: (check("max"), value)[1])
    [*filter(lambda _: check("filter"), [1])]
    eval("check('eval')", {"check": check})
    exec(compile("check('exec')", "<exec>", "exec"), {"check": check})


class Pickled:
    def __reduce__(self):
        check("pickle")
        return list, ()


def case_pickle():
    pickle.dumps(Pickled())


def case_ctypes_callbacks():
    libc = ctypes.CDLL(None)
    seen = []

    def nested(level):
        seen.append(check(f"callback {level}"))
        if level:
            compare = CALLBACK(lambda a, b: nested(level - 1) or 0)
            libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
        return 0

    nested(5)
    frames, expected = seen[-1]
    names = entries(frames, expected)
    assert names.count("<lambda>") == 5, names
    if not support.EACH_FRAME_IS_ENTERED:
        assert "nested" not in names, names
