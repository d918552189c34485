"""Functions that do everything that functions can do, in a pseudo-random order with a seed."""

import contextlib
import random

SEED = 20261115
STEPS = 400


class Stop(Exception):
    pass


class Chance:
    def __init__(self, seed, steps):
        self.random, self.left, self.suspended = random.Random(seed), steps, []

    def choose(self, depth):
        if self.left <= 0 or depth > 12:
            return None
        self.left -= 1
        return ACTIONS[int(self.random.random() * len(ACTIONS))]


def act(chance, depth):
    for _ in range(3):
        action = chance.choose(depth)
        if action is None:
            return
        action(chance, depth + 1)


def call(chance, depth):
    act(chance, depth)


def twice(chance, depth):
    call(chance, depth)
    call(chance, depth)


def by_native(chance, depth):
    list(map(lambda _: act(chance, depth), range(2)))


def throws(chance, depth):
    act(chance, depth)
    raise Stop(depth)


def catches(chance, depth):
    with contextlib.suppress(Stop):
        throws(chance, depth)


def cleans(chance, depth):
    try:
        act(chance, depth)
    finally:
        act(chance, depth + 3)


def steps(chance, depth):
    for _ in range(4):
        act(chance, depth)
        try:
            yield depth
        except Stop:
            act(chance, depth + 2)


def runs_steps(chance, depth):
    with contextlib.suppress(Stop):
        for _ in steps(chance, depth):
            pass


def suspends(chance, depth):
    generator = steps(chance, depth)
    with contextlib.suppress(Stop):
        next(generator)
        chance.suspended.append(generator)


def goes_on(chance, depth):
    if chance.suspended:
        generator = chance.suspended.pop(0)
        with contextlib.suppress(Stop):
            next(generator, None)
            chance.suspended.append(generator)


def throws_into(chance, depth):
    if chance.suspended:
        with contextlib.suppress(Stop, StopIteration):
            chance.suspended.pop().throw(Stop())


def closes(chance, depth):
    if chance.suspended:
        chance.suspended.pop().close()


def forgets(chance, depth):
    if len(chance.suspended) > 2:
        del chance.suspended[0]


async def awaits(chance, depth):
    act(chance, depth)
    return await awaits(chance, depth + 2) if depth < 8 else depth


def runs_coroutine(chance, depth):
    try:
        awaits(chance, depth).send(None)
    except StopIteration:
        pass


ACTIONS = (
    call,
    twice,
    by_native,
    throws,
    catches,
    cleans,
    runs_steps,
    suspends,
    goes_on,
    throws_into,
    closes,
    forgets,
    runs_coroutine,
)


def main(seed=SEED, steps=STEPS):
    for number in range(12):
        chance = Chance(seed + number, steps // 12)
        while chance.left > 0:
            with contextlib.suppress(Stop):
                act(chance, 0)
        while chance.suspended:
            closes(chance, 0)
