"""An interpreter that is refused: python fallback_cases.py LIBRARY REASON. The public API gives its frames."""

import sys

import support


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    expected = support.truth(sys._getframe())
    frames, stop = support.held.frames("walk_reader", len(expected) + 8)
    assert stop == "end of stack", stop
    found = [(frame.code, frame.instruction) for frame in frames[2:]]
    assert found == [(code, lasti) for code, lasti, _, _ in expected[1:]], (found, expected)
    assert not any(frame.activation or frame.is_entry for frame in frames)
    return support.released.frames("walk_reader", 8)


def main(path, reason):
    support.load(path)
    assert support.held.unavailable().decode() == reason, support.held.unavailable()
    assert support.held.fallback_reason().decode() == reason, support.held.fallback_reason()
    for depth in 0, 50:
        assert recurse(depth) == ([], "the GIL is not held")
    print("fallback:", reason)


if __name__ == "__main__":
    main(*sys.argv[1:])
