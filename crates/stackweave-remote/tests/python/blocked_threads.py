"""Blocks threads in many ways, prints their stacks as JSON, and waits.

Lines come from the interpreter itself: `sys._current_frames`, and from 3.11 on `co_positions`.
"""

import json
import sys
import threading
import time

NEVER = threading.Lock()
NEVER.acquire()
STACK = 512 << 20
DEEP = 5000


def sleeping():
    time.sleep(
        1000
    )


def locked():
    NEVER.acquire()


def locked_with():
    with NEVER:
        pass


def called_by_sorted():
    def key(item):
        if item == 2:
            NEVER.acquire()
        return item

    sorted([1, 2, 3], key=key)


def called_by_map():
    return list(map(lambda item: NEVER.acquire(), [1]))


def called_by_c():
    import ctypes

    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def comparison(left, right):
        NEVER.acquire()
        return 0

    numbers = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(numbers, 3, ctypes.sizeof(ctypes.c_int), compare(comparison))


def in_generators():
    def inner(count):
        for number in range(count):
            yield number
        NEVER.acquire()

    def outer():
        yield from inner(3)

    expression = (number + 1 for number in outer())
    for _ in expression:
        pass


def in_coroutines():
    async def leaf():
        NEVER.acquire()

    async def middle():
        await leaf()

    async def stream():
        yield 1
        await middle()

    async def root():
        async for _ in stream():
            pass

    root().send(None)


class Fläche:
    """Instances whose creation waits: frequent instantiation uses hidden frames."""

    def __init__(self, waits):
        if waits:
            self.größe

    @property
    def größe(self):
        NEVER.acquire()

    def __eq__(self, other):
        NEVER.acquire()

    __hash__ = None


def in_instances():
    for _ in range(100):
        Fläche(False)
    for waits in [False] * 100 + [True]:
        Fläche(waits)


def in_comparison():
    return [1, Fläche(False)].index(Fläche(False))


def named_in_every_width():
    names = {"__builtins__": __builtins__, "NEVER": NEVER}
    source = "def {0}():\n    {1}\n"
    names_and_bodies = [("名前", "NEVER.acquire()"), ("élan", "名前()"), ("𝒳", "élan()"), ("a" * 300, "𝒳()")]
    for name, body in names_and_bodies:
        exec(compile(source.format(name, body), "/tmp/\udcff" + name + ".py", "exec"), names)
    names["a" * 300]()


def recursing(depth=DEEP):
    if depth == 0:
        NEVER.acquire()
    else:
        recursing(depth - 1)


def recursing_through_c(depth=200):
    if depth == 0:
        NEVER.acquire()
    sorted([depth], key=lambda item: recursing_through_c(item - 1))


def in_except_and_finally():
    try:
        try:
            raise ValueError
        except ValueError:
            raise KeyError
    except KeyError:
        try:
            pass
        finally:
            NEVER.acquire()


def in_comprehension():
    return {item: [NEVER.acquire() for _ in [1] if item] for item in [1]}


def in_greenlets():
    import greenlet

    def inner():
        NEVER.acquire()

    def outer():
        greenlet.greenlet(inner).switch()

    greenlet.greenlet(outer).switch()


WAYS = [
    sleeping,
    locked,
    locked_with,
    called_by_sorted,
    called_by_map,
    called_by_c,
    in_generators,
    in_coroutines,
    in_instances,
    in_comparison,
    named_in_every_width,
    recursing,
    recursing_through_c,
    in_except_and_finally,
    in_comprehension,
    in_greenlets,
]


def shown(text):
    return "".join("\ufffd" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in text)


def described(frame):
    code = frame.f_code
    qualname = getattr(code, "co_qualname", None)
    if hasattr(code, "co_positions"):
        position = next(p for index, p in enumerate(code.co_positions()) if index == frame.f_lasti // 2)
    else:
        position = (frame.f_lineno, frame.f_lineno, None, None)
    return [shown(code.co_name), qualname and shown(qualname), shown(code.co_filename), code.co_firstlineno, *position]


def stacks():
    found = {}
    for ident, frame in sys._current_frames().items():
        stack = found[ident] = []
        while frame is not None:
            stack.append(described(frame))
            frame = frame.f_back
    return found


def is_asleep(thread):
    if not hasattr(thread, "native_id") or thread.native_id is None:
        return False
    with open(f"/proc/self/task/{thread.native_id}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def settled():
    """Returns the stacks of all threads, once all of them wait."""
    last = None
    while True:
        others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
        now = {ident: stack for ident, stack in stacks().items() if ident != threading.get_ident()}
        if now == last and all(map(is_asleep, others)):
            return now, {thread.ident: thread.native_id for thread in others}
        last = now
        time.sleep(0.1)


def report():
    found, numbers = settled()
    threads = [{"ident": ident, "task": numbers[ident], "frames": stack} for ident, stack in found.items()]
    print(json.dumps(threads), flush=True)
    NEVER.acquire()


def main():
    sys.setrecursionlimit(2 * DEEP)
    threading.stack_size(STACK)
    for way in WAYS:
        try:
            __import__({"in_greenlets": "greenlet", "called_by_c": "ctypes"}.get(way.__name__, "sys"))
        except ImportError:
            continue
        threading.Thread(target=way, daemon=True).start()
    threading.Thread(target=report, daemon=True).start()
    NEVER.acquire()


main()
