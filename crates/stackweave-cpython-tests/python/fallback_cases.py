"""A rejected interpreter: python fallback_cases.py LIBRARY REASON. The public API provides its frames."""

import ctypes
import gc
import json
import sys
import weakref

import support

ANY_KIND = ctypes.c_uint32(0)


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    expected = support.truth(sys._getframe())
    frames, stop = support.held.frames("walk_reader", len(expected) + 8)
    assert stop == "end of stack", stop
    found = [(frame.code, frame.instruction) for frame in frames[2:]]
    assert found == [(code, lasti) for code, lasti, _, _ in expected[1:]], (found, expected)
    assert not any(frame.activation or frame.is_entry for frame in frames)
    check_names(expected)
    return support.released.frames("walk_reader", 8)


def check_names(expected):
    frames, stop = support.held.frames("source_walk", len(expected) + 8, ANY_KIND)
    assert stop == "end of stack" and len(frames) == len(expected) + 2, (stop, len(frames))
    for frame, (_, _, line, name) in list(zip(frames[2:], expected))[1:]:
        found, _, _, numbers = support.held.locate(ctypes.c_uint64(frame.words[0])).decode().split("\n")
        numbers = json.loads(numbers)
        assert (found, numbers[0]) == (name, line), (found, numbers, name, line)
        assert frame.words[1] == 0
    assert support.released.frames("source_walk", 8, ANY_KIND) == ([], "the GIL is not held")


def check_that_code_is_kept():
    made = {"walk": lambda: support.held.frames("source_walk", 8, ANY_KIND)}
    exec("def kept(): walk()", made)
    made["kept"]()
    kept = weakref.ref(made["kept"].__code__)
    made.clear()
    gc.collect()
    assert kept() is not None


def main(path, reason):
    support.load(path)
    assert support.held.unavailable().decode() == reason, support.held.unavailable()
    assert support.held.fallback_reason().decode() == reason, support.held.fallback_reason()
    assert support.held.stats().decode().endswith(f"pinning public API {reason}"), support.held.stats()
    for depth in 0, 50:
        assert recurse(depth) == ([], "the GIL is not held")
    check_that_code_is_kept()
    print("fallback:", reason)


if __name__ == "__main__":
    main(*sys.argv[1:])
