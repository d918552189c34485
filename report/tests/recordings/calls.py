"""Makes calls of all sorts: threads, recursion, generators, libraries. `calls.py N` runs N rounds."""

import functools
import json
import random
import re
import sys
import threading


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Parser:
    def __init__(self, text):
        self.text = text

    def words(self):
        for match in re.finditer(r"\w+", self.text):
            yield match.group()

    def parse(self):
        return [self.word(word) for word in self.words()]

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def word(self, word):
        return word.lower()


def serialise(n):
    return json.dumps([{"id": i, "name": f"item {i}"} for i in range(n)])


def work(size, rounds):
    for _ in range(rounds):
        fibonacci(6 + size)
        Parser("alpha Beta gamma " * 3).parse()
        json.loads(serialise(5))


def main(rounds):
    threads = [threading.Thread(target=work, args=(size, rounds), name=f"worker-{size}") for size in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(rounds):
        sorted((random.random() for _ in range(50)), key=lambda number: -number)
        serialise(10)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    random.seed(7)
    main(int(sys.argv[1]))
