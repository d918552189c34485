"""Builds a stack that is typical of real programs, and measures in its innermost frame.

The arguments are the library that measures, and the number of rounds. With torch, the stack has nested backward passes; without
torch, it has Python functions that C code calls.
"""

import ctypes
import functools
import json
import platform
import sys

TORCH_LEVELS = 4
PYTHON_LEVELS = 7


def through_torch(torch, measure):
    class Descend(torch.autograd.Function):
        @staticmethod
        def forward(context, value, level):
            context.level = level
            return value.clone()

        @staticmethod
        def backward(context, gradient):
            descend(context.level - 1)
            return gradient, None

    def descend(level):
        if level == 0:
            measure()
            return
        with torch.enable_grad():
            value = torch.ones(4, requires_grad=True)
            Descend.apply(value * 2, level).sum().backward()

    descend(TORCH_LEVELS)


def through_callbacks(measure):
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int)

    def descend(level):
        if level == 0:
            measure()
        elif level % 3 == 0:
            functools.reduce(lambda _, inner: descend(inner), [level - 1], None)
        elif level % 3 == 1:
            sorted([level - 1], key=descend_as_key)
        else:
            callback(descend)(level - 1)

    def descend_as_key(level):
        descend(level)
        return level

    descend(PYTHON_LEVELS)


def main():
    measure_here = ctypes.CDLL(sys.argv[1]).stackweave_bench_measure_here
    measure_here.argtypes = [ctypes.c_size_t]
    measure_here.restype = None

    def measure():
        measure_here(int(sys.argv[2]))

    python = f"Python {platform.python_version()}"
    try:
        import torch
    except ImportError:
        print(json.dumps({"stack": f"{python} callbacks"}), flush=True)
        through_callbacks(measure)
    else:
        version = torch.__version__.split("+")[0]
        print(json.dumps({"stack": f"{python}, torch {version} autograd"}), flush=True)
        through_torch(torch, measure)


main()
