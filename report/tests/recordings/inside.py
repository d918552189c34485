"""A program whose trace starts while functions are running: these are open, and do not count as calls."""

import sys

import stackweave


def leaf(number):
    return number + 1


def body():
    with stackweave.trace(sys.argv[1]):
        for number in range(2000):
            leaf(number)


def main():
    body()


main()
