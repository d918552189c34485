"""Programs of calls, generators, exceptions, classes, exec and collections, walked in every way at every step."""

import functools
import gc
import random
import sys
import threading

import support


class Program:
    """Each method `by_*` creates frames in a different way, and continues inside them."""

    def __init__(self, seed, steps):
        self.random, self.steps = random.Random(seed), steps
        self.methods = [getattr(self, name) for name in dir(self) if name.startswith("by_")]
        self.suspended = []

    def run(self):
        while self.steps > 0:
            self.go(30)

    def go(self, depth):
        self.steps -= 1
        self.check()
        if depth and self.steps > 0:
            for _ in range(self.random.choice((0, 1, 1, 1, 2))):
                self.random.choice(self.methods)(depth - 1)
                self.check()
        return depth

    def check(self):
        library = self.random.choice((support.held, support.released))
        fault = library.differing_walks()
        assert fault is None, fault.decode()

    def by_call(self, depth):
        self.go(depth)

    def by_recursion(self, depth, count=None):
        count = self.random.randrange(20) if count is None else count
        return self.by_recursion(depth, count - 1) if count else self.go(depth)

    def by_generator(self, depth):
        def generate():
            for _ in range(2):
                self.go(depth // 2)
                yield depth

        sum(generate())

    def by_suspended_generator(self, depth):
        def generate():
            while True:
                yield self.go(min(depth, 3))

        if len(self.suspended) < 4:
            self.suspended.append(generate())
        generator = self.random.choice(self.suspended)
        if not generator.gi_running:
            next(generator)

    def by_delegation(self, depth):
        def inner():
            yield self.go(depth // 2)

        def outer():
            yield from inner()
            self.check()

        list(outer())

    def by_exception(self, depth):
        def fail(levels):
            try:
                return fail(levels - 1) if levels else {}[depth]
            finally:
                self.check()

        try:
            fail(self.random.randrange(5))
        except KeyError:
            self.go(depth)

    def by_instance(self, depth):
        program = self

        class Made:
            def __init__(self, depth):
                program.check()
                if depth:
                    program.go(depth)

        for _ in range(12):
            Made(0)
        Made(depth)

    def by_exec(self, depth):
        name = f"made_{self.random.randrange(1000)}"
        made = {"go": self.go, "depth": depth // 2}
        exec(compile(f"def {name}():\n    return go(depth)\n{name}()", f"<{name}>", "exec"), made)

    def by_native_code(self, depth):
        list(map(self.go, [depth // 2]))
        sorted([2, 1], key=lambda _: self.go(0))
        functools.partial(functools.reduce, lambda *_: self.go(0), [1, 2, 3])()

    def by_closing(self, depth):
        program = self

        class Closing:
            def __del__(self):
                program.go(0)

        cycle = Closing()
        cycle.itself = cycle
        del cycle
        gc.collect(0)


def case_random_programs():
    before = support.held.replayed()
    for seed in range(6):
        Program(seed, 1500).run()
    assert support.held.replayed() > before + 100_000, support.held.replayed()


def case_random_programs_in_threads():
    faults, replayed = [], []

    def run(seed):
        try:
            Program(seed, 400).run()
            replayed.append(support.held.replayed())
        except BaseException as fault:
            faults.append(fault)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run, args=(100 + number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not faults, faults
    assert len(replayed) == 4 and min(replayed) > 1000, replayed
