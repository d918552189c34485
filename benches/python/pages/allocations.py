"""Allocates COUNT blocks, and never frees a thousandth of them: python allocations.py COUNT"""

import sys

kept = []


def make(number):
    # Blocks of more than 512 bytes come from the system's allocator, which all profilers record.
    return bytearray(600 + number % 512)


def step(numbers):
    for number in numbers:
        block = make(number)
        if number % 1000 == 0:
            kept.append(block)


def main(count):
    for start in range(0, count, 100_000):
        step(range(start, min(count, start + 100_000)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
