"""Native functions that call back into Python."""

import bisect
import collections
import functools
import heapq
import itertools
import operator
import re


class Key:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value


class Missing(dict):
    def __missing__(self, key):
        return make(key)


def make(key=0):
    return [key]


def negative(value):
    return -value


def add(first, second):
    return first + second


def nested(value):
    """Calls Python from C from Python from C."""
    return list(map(lambda each: sorted([each, value], key=negative), range(value)))


def fails(value):
    if value == 3:
        raise ValueError(value)
    return value


def main():
    values = [5, 3, 8, 1]
    assert sorted(values, key=negative) == [8, 5, 3, 1]
    values.sort(key=lambda value: value % 4)
    assert [key.value for key in sorted(map(Key, values))] == [1, 3, 5, 8]
    assert max(values, key=negative) == 1 and min(values, key=negative) == 8
    assert sorted(filter(lambda value: value > 3, values)) == [5, 8]
    assert functools.reduce(add, values) == 17
    assert re.sub("[a-z]", lambda match: match.group().upper(), "abc1") == "ABC1"
    groups = collections.defaultdict(make)
    groups["x"].append(1)
    assert groups["x"] == [0, 1] and Missing()["y"] == ["y"]
    assert list(itertools.accumulate(values, add))[-1] == 17
    assert [list(group) for _, group in itertools.groupby([1, 1, 2], lambda value: value)] == [[1, 1], [2]]
    assert list(itertools.starmap(add, [(1, 2), (3, 4)])) == [3, 7]
    assert list(itertools.takewhile(lambda value: value < 2, itertools.count())) == [0, 1]
    heap = [Key(value) for value in values]
    heapq.heapify(heap)
    assert heapq.heappop(heap).value == 1
    assert sorted(values, key=functools.cmp_to_key(lambda one, two: one - two)) == [1, 3, 5, 8]
    bisect.insort(heap, Key(4))
    assert operator.methodcaller("__lt__", Key(9))(Key(1))
    assert len(nested(3)) == 3
    try:
        list(map(fails, range(5)))
    except ValueError:
        pass
    assert list(iter(functools.partial(next, iter([1, 2, None])), None)) == [1, 2]
    assert any(map(fails, [0, 1])) and not all(map(fails, [0, 1]))
    assert sum(map(fails, range(3))) == 3
