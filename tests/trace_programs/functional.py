"""Wrappers of functools and similar modules between a call and the function."""

import functools
import operator


@functools.singledispatch
def show(value):
    return "something"


@show.register
def _(value: int):
    return f"int {value}"


@show.register(list)
def show_list(value):
    return [show(each) for each in value]


class Shape:
    def __init__(self, side):
        self.side = side

    @functools.cached_property
    def area(self):
        return self.side**2

    @functools.singledispatchmethod
    def scale(self, factor):
        raise TypeError(factor)

    @scale.register
    def _(self, factor: int):
        return Shape(self.side * factor)

    scale_twice = functools.partialmethod(scale, 2)


@functools.total_ordering
class Version:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == other.number

    def __lt__(self, other):
        return self.number < other.number


def main():
    @functools.cache
    def cached(number):
        return number if number < 2 else cached(number - 1) + cached(number - 2)

    def three(first, second, third):
        return first, second, third

    assert cached(20) == 6765 and cached.cache_info().misses == 21
    assert functools.partial(three, 1, third=3)(2) == (1, 2, 3)
    assert functools.partial(functools.partial(three, 1), 2)(3) == (1, 2, 3)
    assert show([1, "x", [2]]) == ["int 1", "something", ["int 2"]]
    shape = Shape(3)
    assert shape.area == shape.area == 9 and shape.scale(2).side == 6 and shape.scale_twice().side == 6
    assert Version(1) <= Version(2) and Version(2) >= Version(2)
    assert operator.attrgetter("area")(Shape(2)) == 4
