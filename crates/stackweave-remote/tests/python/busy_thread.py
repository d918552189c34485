"""Keeps a thread busy with calls of every kind, and prints which function may call which."""

import json
import sys
import threading
import time

NEVER = threading.Lock()
NEVER.acquire()


def leaf(number):
    total = 0
    for step in range(number % 7):
        total += step
    return total


def numbers(count):
    for number in range(count):
        yield leaf(number)


class Thing:
    def __init__(self, number):
        self.number = leaf(number)

    def __lt__(self, other):
        return leaf(self.number) < other.number


def by_sorted(count):
    return sorted(range(count), key=leaf)


def by_operator(count):
    return sorted(map(Thing, range(count)))


def by_generator(count):
    return sum(numbers(count))


def by_recursion(count):
    return by_recursion(count - 1) if count else by_sorted(5)


def failing(count):
    if count:
        failing(count - 1)
    raise KeyError(leaf(count))


def catching(count):
    try:
        failing(count)
    except KeyError:
        return leaf(count)


def busy(description):
    waits_at = described(main)["last"]
    while sys._current_frames()[description["main"]].f_lineno != waits_at:
        time.sleep(0.01)
    print(json.dumps(description), flush=True)
    while True:
        by_sorted(5)
        by_operator(5)
        by_generator(5)
        by_recursion(20)
        catching(5)


CALLERS = {
    leaf: ["numbers", "__init__", "__lt__", "by_sorted", "failing", "catching"],
    numbers: ["by_generator"],
    Thing.__init__: ["by_operator"],
    Thing.__lt__: ["by_operator"],
    by_sorted: ["busy", "by_recursion"],
    by_operator: ["busy"],
    by_generator: ["busy"],
    by_recursion: ["busy", "by_recursion"],
    failing: ["failing", "catching"],
    catching: ["busy"],
    busy: ["run"],
    threading.Thread.run: ["_bootstrap_inner"],
    threading.Thread._bootstrap_inner: ["_bootstrap"],
    threading.Thread._bootstrap: [],
}


def described(function):
    code = function.__code__
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return {"callers": CALLERS.get(function), "first": code.co_firstlineno, "last": max(lines)}


def main():
    functions = {function.__name__: described(function) for function in CALLERS}
    description = {"main": threading.get_ident(), "functions": functions}
    threading.Thread(target=busy, args=[description], daemon=True).start()
    NEVER.acquire()


main()
