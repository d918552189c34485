"""Leaves the hooks installed when the interpreter ends: python calls_at_shutdown.py LIBRARY MECHANISM"""

import atexit
import sys
import threading
import time

import support


def busy(depth=0):
    return busy(depth + 1) if depth < 20 else sum(number for number in range(20))


def forever():
    while True:
        busy()


class AtTheEnd:
    """Called when the interpreter clears its modules."""

    def __init__(self):
        self.write, self.take = print, support.held.calls_take

    def __del__(self):
        self.last_call()
        if b"last_call" in self.take():
            self.write("recorded at the end", flush=True)

    def last_call(self):
        pass


def main(library, mechanism):
    support.load(library)
    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    fault = support.held.calls_start(int(mechanism), False)
    if fault is not None:
        print(fault.decode())
        return
    time.sleep(0.05)
    atexit.register(busy)
    if int(mechanism) == 3:  # threading removes its profile function before
        support.held.calls_take()
        busy()
        assert b"busy" in support.held.calls_take()
        print("recorded at the end")
    else:
        support.at_the_end = AtTheEnd()  # not here: the threads keep this module's variables


main(*sys.argv[1:])
