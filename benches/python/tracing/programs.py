"""Programs whose calls are traced. Each repeats its work."""

import asyncio
import importlib.util
import os

import import_storm


def fib(number):
    return number if number < 2 else fib(number - 1) + fib(number - 2)


def fibs(times):
    for _ in range(times):
        fib(18)


def of_pyperformance(name):
    """Returns the module of a pyperformance benchmark."""
    import pyperformance

    path = os.path.join(os.path.dirname(pyperformance.__file__), "data-files/benchmarks", f"bm_{name}")
    spec = importlib.util.spec_from_file_location(f"bm_{name}", os.path.join(path, "run_benchmark.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def richards():
    run = of_pyperformance("richards").Richards().run

    def checked(times):
        if not run(times):
            raise RuntimeError("richards counted wrongly")

    return checked


def deltablue():
    delta_blue = of_pyperformance("deltablue").delta_blue

    def run(times):
        for _ in range(times):
            delta_blue(100)

    return run


def builtins(times):
    values = list(range(8))
    for _ in range(times):
        for _ in range(1_000):
            len(values)
            abs(-3)
            values.append(1)
            values.pop()
            isinstance(values, list)
            values.index(5)
            "a b".split()
            hash(values.append)


def numbers(count):
    for number in range(count):
        yield number


def doubled(source):
    for number in source:
        yield 2 * number


def generators(times):
    for _ in range(times):
        for _ in doubled(numbers(1_000)):
            pass


def fails(depth):
    if depth:
        fails(depth - 1)
    raise ValueError(depth)


def exceptions(times):
    for _ in range(times):
        for _ in range(500):
            try:
                fails(3)
            except ValueError:
                pass


async def step():
    await asyncio.sleep(0)


async def task():
    for _ in range(20):
        await step()


def tasks(times):
    async def main():
        for _ in range(times):
            await asyncio.gather(*(task() for _ in range(10)))

    asyncio.run(main())


def loop(times):
    total = 0
    for _ in range(times):
        for number in range(20_000):
            total += number & 7
    return total


# The function that creates each program, and the number of repetitions, which take about 10 ms on a typical machine, except for the two
# programs whose minimum is longer.
PROGRAMS = {
    "fib": (lambda: fibs, 24),
    "richards": (richards, 1),
    "deltablue": (deltablue, 5),
    "builtins": (lambda: builtins, 24),
    "generators": (lambda: generators, 60),
    "exceptions": (lambda: exceptions, 8),
    "asyncio": (lambda: tasks, 6),
    "imports": (lambda: import_storm.run, 1),
    "loop": (lambda: loop, 12),
}
