"""A program that only calls functions: 32 functions, each of which calls two others, down to a depth.

At every third level the second callee is pseudo-random, so that the calls don't repeat; it is the same in every run.
`src/recording/program.rs` has the same program in Rust.
"""

import threading
import time

FUNCTIONS = 32
DEPTH = 13
CALLS_PER_TREE = 2 ** (DEPTH + 1) - 1

_CALLS = """
    if depth:
        seed = seed * 1103515245 + 12345 & 0xffffffff
        call_{first}(depth - 1, seed)
        if depth % 3 or seed & 0x10000:
            call_{second}(depth - 1, seed >> 3)
        else:
            call_{third}(depth - 1, seed >> 3)
"""
_PLAIN = f"""
def call_{{number}}(depth, seed):{_CALLS}
"""
_RECORDED = f"""
def call_{{number}}(depth, seed):
    begin("call_{{number}}"){_CALLS}
    end()
"""


def _tree(source, names):
    for number in range(FUNCTIONS):
        first, second, third = ((factor * number + factor) % FUNCTIONS for factor in (7, 3, 5))
        exec(compile(source.format(number=number, first=first, second=second, third=third), __file__, "exec"), names)
    root = names["call_0"]

    def grow(trees):
        for tree in range(trees):
            root(DEPTH, tree)

    return grow


def plain():
    """Returns a function that calls trees of functions."""
    return _tree(_PLAIN, {})


def recorded(begin, end):
    """Returns the same function, in which each called function records its start and end."""
    return _tree(_RECORDED, {"begin": begin, "end": end})


def together(threads, work):
    """Runs `work` on several threads at once. Returns the sum of their CPU times in nanoseconds."""
    cpu = [0] * threads
    ready = threading.Barrier(threads)

    def run(number):
        ready.wait()
        before = time.thread_time_ns()
        work()
        cpu[number] = time.thread_time_ns() - before

    workers = [threading.Thread(target=run, args=[number]) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(cpu)
