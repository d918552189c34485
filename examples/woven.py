"""A stack from Python into C and back, twice: as `traceback` shows it, and the complete one."""

import ctypes
import sys
import timeit
import traceback
from os.path import basename

import stackweave

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
libc = ctypes.CDLL(None)
captured = []


def main():
    return sorted(["weave", "stack"], key=order_of_letters)


def order_of_letters(word):
    letters = (ctypes.c_int * len(word))(*map(ord, word))
    libc.qsort(letters, len(letters), ctypes.sizeof(ctypes.c_int), compare)
    return letters[:]


@COMPARE
def compare(one, other):
    if not captured:
        capture_both()
    return one[0] - other[0]


def capture_both():
    captured.append(stackweave.capture())
    captured.append(traceback.extract_stack())


def show(woven, standard):
    print(f"{'traceback.extract_stack()':28}  stackweave.capture()")
    frames = list(reversed(woven.frames))
    start = next(index for index, frame in enumerate(frames) if frame.kind == "python")
    if start > 1:
        print(f"{'':28}    | {start - 1} native frames, from {frames[0].name} on")
        frames = frames[start - 1 :]
    standard = iter(standard)
    for frame in frames:
        if frame.kind == "python":
            entry = next(standard)
            row = f"{basename(entry.filename)}:{entry.lineno} {entry.name}"
            print(f"{row:28}  {frame.name:37.37}  {basename(frame.filename)}:{frame.lineno}")
        else:
            where = f"{basename(frame.filename)}:{frame.lineno} " if frame.filename else ""
            module = basename(frame.module or "?").partition(".cpython-")[0]
            print(f"{'':28}    | {frame.name:33.33}  {where}[{module}]")
    print(f"{'':28}  {woven.stop_reason}\n")


def measure():
    """Measures the cost of a capture at a depth of 20 calls, compared with an empty function."""

    def deep(levels, function):
        return deep(levels - 1, function) if levels else function()

    def cost(function, calls=200):
        """Alternates both, so that a busy moment of the machine affects both."""
        pairs = [[timeit.timeit(lambda: deep(20, each), number=calls) for each in (function, int)] for _ in range(21)]
        return max(0.01, sorted(with_it - without for with_it, without in pairs)[10] / calls * 1e6)

    ours = cost(stackweave.capture)
    print(f"On a stack 20 calls deep, Python {sys.version.split()[0]}:")
    print(f"  stackweave.capture()      {ours:8.2f} us")
    for name, function in [
        ("walk of sys._getframe()", lambda: [*walk(sys._getframe())]),
        ("traceback.extract_stack()", traceback.extract_stack),
    ]:
        cost_of_other = cost(function)
        print(f"  {name:25} {cost_of_other:8.2f} us, {cost_of_other / ours:4.0f} times that, and no native frames")


def walk(frame):
    while frame:
        yield frame.f_code, frame.f_lasti
        frame = frame.f_back


main()
show(*captured)
measure()
