"""Comprehensions and generator expressions; those of newer versions are part of the function around them."""


def double(value):
    return value * 2


def main():
    assert [double(value) for value in range(4)] == [0, 2, 4, 6]
    assert {double(value) for value in range(3)} == {0, 2, 4}
    assert {value: double(value) for value in range(3)} == {0: 0, 1: 2, 2: 4}
    # fmt: off
    assert [
        [double(inner) for inner in range(outer)]
        for outer in range(3)
    ] == [[], [0], [0, 2]]
    assert sum(double(value) for value in range(4) if double(value) > 2) == 10
    doubled = (double(other) for other in range(2))
    # fmt: on
    assert [*(value for value in doubled)] == [0, 2]
    try:
        [1 // value for value in (1, 0)]
    except ZeroDivisionError:
        pass
    assert any(value > 2 for value in range(10))
    assert [(lambda: value)() for value in range(3)] == [0, 1, 2]
