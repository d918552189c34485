"""A small cache with a leak, for recording: stackweave memory examples/memory.py

It has tags, a thread, blocks that are freed immediately, and some that are never freed. It also runs without a recorder.
"""

import threading
import zlib

import stackweave


class Cache:
    def __init__(self):
        self.pages = {}

    def page(self, number):
        if number not in self.pages:
            self.pages[number] = self.render(number)
        return zlib.decompress(self.pages[number])

    def render(self, number):
        text = bytearray()
        for line in range(2000):
            text += f"page {number}, line {line}\n".encode()
        return zlib.compress(bytes(text), 1)


@stackweave.memory_tag("statistics")
def statistics(pages):
    counts = {}
    for page in pages:
        for word in page.split():
            counts[word] = counts.get(word, 0) + 1
    return counts


def serve(cache, first):
    with stackweave.memory_tag("requests"):
        return sum(len(cache.page(number)) for number in range(first, first + 100))


if __name__ == "__main__":
    cache = Cache()
    worker = threading.Thread(target=serve, args=(cache, 50), name="worker")
    worker.start()
    served = serve(cache, 0)
    worker.join()
    words = statistics(cache.page(number) for number in range(20))
    print(served, len(cache.pages), len(words))
