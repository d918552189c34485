"""Measures the cost of a walk on fresh frames: python measure_walks.py LIBRARY

Each walk is of new activations, called at the end of a recursion, or of as many different functions, and timed inside
the call. The figure is the mean of a batch of walks, for the batch at the cheapest quarter. For the public API it does
not include what the interpreter does later to free the frame objects that a walk created.

replay: with code ids, along the last stack. source: with code ids, frame by frame. walk: addresses of code objects.
"""

import ctypes
import gc
import sys

import support

BATCHES, BATCH = 60, 50


def recursion(depth, leaf):
    def recurse(depth):
        return recurse(depth - 1) if depth else leaf()

    return lambda: recurse(depth)


def different_functions(depth, leaf):
    made = {"f0": leaf}
    for number in range(1, depth + 2):
        exec(f"def f{number}(): return f{number - 1}()", made)
    return made[f"f{depth + 1}"]


def main(path):
    support.load(path)
    library = support.held
    assert library.install() is None
    rate = library.ticks_per_nanosecond()

    def nanoseconds(program, name, depth):
        run, batches = program(depth, getattr(library, name)), []
        for _ in range(BATCHES):
            ticks = 0
            for _ in range(BATCH):
                length = run()
                ticks += library.ticks()
            batches.append(ticks / BATCH)
        return length, sorted(batches)[BATCHES // 4] / rate

    gc.disable()
    _, nothing = nanoseconds(recursion, "timed_nothing", 5)
    version = sys.version.split()[0]
    for program in recursion, different_functions:
        for depth in 5, 20, 100:
            start = max(depth - len(support.truth(sys._getframe())) - 3, 0)
            row = [f"{version:8} {program.__name__.split('_')[0]:9} {depth:3}:"]
            for name in "timed_replay", "timed_source", "timed_walk", "timed_public_walk":
                length, cost = nanoseconds(program, name, start)
                cost -= nothing
                row.append(f"{name[6:].replace('_', ' ')} {cost:7.1f} ns, {cost / length:5.2f} a frame ({length});")
            print(*row)
    measure_names(library, version)


def measure_names(library, version):
    """Measures the last instruction of 300 functions of 50 lines each."""
    lines = "\n".join(f"    x{number} = [{number}, call, {number} * 2]" for number in range(48))
    first, again = [], []
    for number in range(300):
        made = {"call": lambda: library.frames("source_walk", 8, ctypes.c_uint32(1))[0][2]}
        exec(f"def made{number}():\n{lines}\n    return call()", made)
        frame = ctypes.c_uint64(made[f"made{number}"]().words[0])
        first.append(library.timed_locate(frame))
        again.append(min(library.timed_locate(frame) for _ in range(20)))
    first, again = sorted(first)[150], sorted(again)[150]
    print(f"{version:8} names: first {first:.0f} ns, again {again:.0f} ns (with 20 of the clock)")


if __name__ == "__main__":
    main(sys.argv[1])
