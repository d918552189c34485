"""The memory of a kept traceback: python traceback_memory.py LIBRARY EFFORT CONTENDER python|woven DEPTH

Measures how the resident size grows over many tracebacks of one stack, which are captured separately and all kept.
"""

import gc
import os
import sys
from itertools import repeat

import contenders
import fresh_stacks
from contenders import Absent, NoPart
from library import PART_NAMES, Library
from report import report_result, version

KEPT, KEPT_BY_TRACEBACK = 100_000, 1_000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def growth(leaf, levels, count):
    kept = [None] * count
    slots = iter(range(count))

    def keep():
        kept[next(slots)] = leaf()

    descent = fresh_stacks.Descent(fresh_stacks.RECURSION, levels)
    descent.names["leaf"] = keep
    gc.collect()
    gc.disable()
    # The memory of the first capture's setup does not belong to a traceback.
    leaf()
    before = []

    def fill():
        before.append(resident())
        descent.batch(repeat(None, count))

    fresh_stacks.on_bare_thread(fill)
    return resident() - before[0]


def main():
    name, part, depth = sys.argv[3], sys.argv[4], int(sys.argv[5])
    contender = contenders.named(name, contenders.ALL)
    parts = next(parts for parts, known in PART_NAMES.items() if known == part)
    case = f"{version()}, {part} {depth}"
    count = KEPT_BY_TRACEBACK if contender is contenders.ExtractStack else KEPT
    # `keep` and the leaf add two frames.
    levels = depth - fresh_stacks.FRAMES_BESIDES - 2
    try:
        leaf = contender(Library(sys.argv[1])).leaf(parts)
    except NoPart:
        pass
    except Absent as absent:
        report_result("python/traceback-memory", case, "bytes", name, absent=absent)
    else:
        report_result("python/traceback-memory", case, "bytes", name, cost=growth(leaf, levels, count) / count)


if __name__ == "__main__":
    main()
