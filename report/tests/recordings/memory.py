"""Allocates memory: keeps some, frees most, and has a high peak once."""

import threading

kept = []


def load(count):
    return [bytearray(100 + 37 * i % 9000) for i in range(count)]


def transform(rows):
    return [bytes(row) for row in rows]


def leak(rows):
    kept.append(rows[::10])


def step(number):
    leak(transform(load(40 + 10 * number)))


def background():
    for _ in range(10):
        load(20)


def peak():
    return len(bytearray(20_000_000))


if __name__ == "__main__":
    thread = threading.Thread(target=background, name="loader")
    thread.start()
    for number in range(12):
        step(number)
    peak()
    step(3)
    thread.join()
