"""Programs whose memory is recorded. Each repeats its work; `EVENTS` has the allocations and frees of one repetition, where
they are known."""

import ctypes
import sys

#: The pairs of malloc and free in one repetition of `malloc`, on each thread.
PAIRS = 200_000
#: The depth of the Python functions that call the C code.
DEPTH = 10


class Record:
    __slots__ = ("key", "value")

    def __init__(self, key, value):
        self.key = key
        self.value = value


def objects():
    """Small objects that live for a while, and arrays of 1 and 2 MiB."""

    def work(times):
        for time in range(times):
            kept = [Record(str(number), [number, number + 1]) for number in range(20_000)]
            arrays = [bytearray((1 + (time + number) % 2) << 20) for number in range(8)]
            index = {record.key: record for record in kept}
            del kept, arrays, index

    return work


def churn():
    """Small objects that are freed immediately."""

    def work(times):
        for _ in range(times):
            for number in range(20_000):
                [number, number + 0.5, str(number), {"key": (number, number)}]

    return work


def blocks():
    """Objects that are too large for Python's own allocator, and so use malloc."""

    def work(times):
        for _ in range(times):
            kept = [None] * 64
            for number in range(50_000):
                kept[number % 64] = bytes(600 + number % 1000)

    return work


def calls():
    """Calls, with almost no allocations."""

    def fib(number):
        return number if number < 2 else fib(number - 1) + fib(number - 2)

    def work(times):
        for _ in range(times):
            fib(20)

    return work


def arrays():
    """Temporary NumPy arrays."""
    import numpy

    def work(times):
        values = numpy.arange(20_000, dtype=float)
        for _ in range(times):
            for _ in range(200):
                values = numpy.sqrt(values * values + 1.0) - 0.5
            numpy.sort(values[::-1].copy())

    return work


def malloc(threads):
    """Blocks that C code allocates and frees."""
    library = ctypes.CDLL(sys.argv[3])
    library.stackweave_bench_malloc_churn.argtypes = ctypes.c_uint64, ctypes.c_uint

    def deep(depth, pairs):
        if depth:
            deep(depth - 1, pairs)
        else:
            library.stackweave_bench_malloc_churn(pairs, threads)

    def work(times):
        deep(DEPTH - 2, PAIRS * times)

    return work


def training():
    """Steps of a small torch training loop on the CPU."""
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(32, 64), torch.randint(0, 10, (32,))

    def work(times):
        for _ in range(times):
            for _ in range(50):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs), targets).backward()
                optimizer.step()

    return work


#: The function that creates each program, and the number of repetitions.
PROGRAMS = {
    "objects": (objects, 25),
    "churn": (churn, 25),
    "blocks": (blocks, 40),
    "calls": (calls, 60),
    "numpy": (arrays, 60),
    "malloc": (lambda: malloc(1), 40),
    "malloc, 2 threads": (lambda: malloc(2), 20),
    "torch": (training, 25),
}
EVENTS = {"malloc": 2 * PAIRS}
