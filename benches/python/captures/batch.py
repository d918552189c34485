"""Resolves a batch of tracebacks, cold and again: python batch.py LIBRARY EFFORT CONTENDER builtins|torch

CPU time of this process and its children. One Python-only traceback has been resolved before, so that nobody is charged
for what a first one makes him import.
"""

import os
import sys
import warnings
from importlib.util import find_spec

import contenders
import many_stacks
from contenders import Absent
from library import PYTHON, WOVEN, Library
from report import cpu_ms, tell, version

TRACEBACKS = 300
AMONG = [
    contenders.Ours,
    contenders.TorchFast,
    contenders.TorchAddr2line,
    contenders.TorchDladdr,
    contenders.LaterLines,
]


def collect(leaf, stacks):
    if stacks == "builtins":
        return many_stacks.through_builtins(leaf, TRACEBACKS)
    warnings.simplefilter("ignore")
    import torch

    return many_stacks.through_torch(torch, leaf, TRACEBACKS)


def main():
    name, stacks = sys.argv[3], sys.argv[4]
    contender = contenders.named(name, AMONG)
    case = f"{version()}, {TRACEBACKS} {stacks}"
    if stacks == "torch" and find_spec("torch") is None:
        return
    try:
        made = contender(Library(sys.argv[1]))
        made.resolve([made.leaf(PYTHON)()])
        tracebacks = collect(made.leaf(PYTHON if contender is contenders.LaterLines else WOVEN), stacks)
    except Absent as absent:
        for state in "cold", "again":
            tell("python/resolve", f"{case} {state}", "ms", name, absent=absent)
        return
    for state in "cold", "again":
        start = cpu_ms()
        resolved = made.resolve(tracebacks)
        cost = cpu_ms() - start
        frames = sum(map(len, resolved))
        tell("python/resolve", f"{case} {state}", "ms", name, cost=cost, frames=frames)
    sys.stdout.flush()
    # The children of torch's symbolizer end with their input.
    os._exit(0)


if __name__ == "__main__":
    main()
