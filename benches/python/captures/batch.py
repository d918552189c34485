"""Resolves a batch of tracebacks twice, cold and warm: python batch.py LIBRARY EFFORT CONTENDER builtins|torch

Measures the CPU time of this process and its children. A Python-only traceback is resolved before, so that imports of the
first resolution are not measured.
"""

import os
import sys
import warnings
from importlib.util import find_spec

import contenders
import many_stacks
from contenders import Absent
from library import PYTHON, WOVEN, Library
from report import cpu_ms, report_result, version

TRACEBACKS = 300
CONTENDERS = [
    contenders.Ours,
    contenders.TorchFast,
    contenders.TorchAddr2line,
    contenders.TorchDladdr,
    contenders.LazyLines,
]


def collect(leaf, stacks):
    if stacks == "builtins":
        return many_stacks.through_builtins(leaf, TRACEBACKS)
    warnings.simplefilter("ignore")
    import torch

    return many_stacks.through_torch(torch, leaf, TRACEBACKS)


def main():
    name, stacks = sys.argv[3], sys.argv[4]
    contender = contenders.named(name, CONTENDERS)
    case = f"{version()}, {TRACEBACKS} {stacks}"
    if stacks == "torch" and find_spec("torch") is None:
        return
    try:
        created = contender(Library(sys.argv[1]))
        created.resolve([created.leaf(PYTHON)()])
        tracebacks = collect(created.leaf(PYTHON if contender is contenders.LazyLines else WOVEN), stacks)
    except Absent as absent:
        for state in "cold", "again":
            report_result("python/resolve", f"{case} {state}", "ms", name, absent=absent)
        return
    for state in "cold", "again":
        start = cpu_ms()
        resolved = created.resolve(tracebacks)
        cost = cpu_ms() - start
        frames = sum(map(len, resolved))
        report_result("python/resolve", f"{case} {state}", "ms", name, cost=cost, frames=frames)
    sys.stdout.flush()
    # The child processes of torch's symbolizer end when their input ends.
    os._exit(0)


if __name__ == "__main__":
    main()
