"""Runs random recursive programs under cProfile with a clock that counts, and prints the events and its results.

For each program: `program SEED`, then in order of time `b FUNCTION TIME` and `e TIME` for each call and return, then
`f FUNCTION CALLS PRIMITIVE SELF TOTAL` and `c CALLER FUNCTION CALLS PRIMITIVE SELF TOTAL` for what cProfile counted.
"""

import cProfile
import random
import sys

# Calls only functions like itself, and C code, which is not profiled.
FUNCTION = """
def f{number}():
    log(("b", {number}, clock.now))
    try:
        state["depth"] += 1
        if state["depth"] < 15:
            for _ in range(draw() % 4):
                if state["left"] <= 0:
                    break
                state["left"] -= 1
                try:
                    functions[draw() % len(functions)]()
                except Failure:
                    if draw() % 2:
                        raise
        if draw() % 10 == 0:
            raise Failure
    finally:
        state["depth"] -= 1
        log(("e", clock.now + clock.step))
"""


class Failure(Exception):
    pass


class Clock:
    """Advances by a random step whenever it is read, and returns the next one in advance."""

    def __init__(self, draw):
        self.draw = draw
        self.now = 0
        self.step = 1

    def __call__(self):
        self.now += self.step
        self.step = 1 + self.draw() % 50
        return self.now


def run(seed):
    chance = random.Random(seed)
    draw = iter([chance.getrandbits(30) for _ in range(20_000)]).__next__
    clock = Clock(draw)
    events = []
    functions = []
    state = {"left": draw() % 300, "depth": 0}
    names = {"Failure": Failure, "clock": clock, "draw": draw, "functions": functions, "log": events.append, "state": state}
    for number in range(1 + draw() % 5):
        exec(FUNCTION.format(number=number), names)
        functions.append(names[f"f{number}"])
    profiler = cProfile.Profile(clock, 1.0, subcalls=True, builtins=False)
    for _ in range(1 + draw() % 3):
        state["left"] += 5
        call = functions[draw() % len(functions)]
        profiler.enable()
        try:
            call()
        except Failure:
            pass
        profiler.disable()
    profiler.create_stats()
    return events, profiler.stats


def write(seed, events, statistics):
    print("program", seed)
    for event in events:
        print(*event)
    for (file, _, name), (primitive, calls, own, total, callers) in statistics.items():
        if file == "~":
            # C code, which is always profiled from 3.14 on.
            continue
        print("f", name[1:], calls, primitive, int(own), int(total))
        for (_, _, caller), (calls, primitive, own, total) in callers.items():
            print("c", caller[1:], name[1:], calls, primitive, int(own), int(total))


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        write(seed, *run(seed))
