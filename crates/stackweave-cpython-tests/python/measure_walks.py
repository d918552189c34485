"""What a walk costs on fresh frames: python measure_walks.py LIBRARY

Each walk is of new activations, called at the bottom of a recursion, and timed inside the call. The figure is the mean
of a batch of walks, that of the batch at the cheapest quarter. What the interpreter does later, to take down frame objects that a walk made, is not in the figure of the
public API.
"""

import gc
import sys

import support

BATCHES, BATCH = 60, 50


def main(path):
    support.load(path)
    library = support.held
    rate = library.ticks_per_nanosecond()

    def recurse(depth, leaf):
        return recurse(depth - 1, leaf) if depth else leaf()

    def nanoseconds(name, depth):
        leaf, batches = getattr(library, name), []
        for _ in range(BATCHES):
            ticks = 0
            for _ in range(BATCH):
                length = recurse(depth, leaf)
                ticks += library.ticks()
            batches.append(ticks / BATCH)
        return length, sorted(batches)[BATCHES // 4] / rate

    gc.disable()
    _, nothing = nanoseconds("timed_nothing", 5)
    for depth in 5, 20, 100:
        start = depth - len(support.truth(sys._getframe())) - 2
        row = [f"{sys.version.split()[0]:8} depth {depth:3}:"]
        for name in "timed_walk", "timed_public_walk":
            length, cost = nanoseconds(name, max(start, 0))
            cost -= nothing
            row.append(f"{name[6:].replace('_', ' ')} {cost:7.1f} ns, {cost / length:5.2f} a frame ({length});")
        recurse(max(start, 0), lambda: row.append(f"repeated {library.repeated_walk() / length:5.2f} a frame"))
        print(*row)


if __name__ == "__main__":
    main(sys.argv[1])
