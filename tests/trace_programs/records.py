"""Classes with generated code: data classes, named tuples, enumerations."""

import collections
import dataclasses
import enum
import typing


def make():
    @dataclasses.dataclass(order=True)
    class Point:
        x: int
        y: int = 0
        names: list = dataclasses.field(default_factory=lambda: [name()], compare=False)

        def __post_init__(self):
            self.x = int(self.x)

    return Point


def name():
    return "name"


class Pair(typing.NamedTuple):
    first: int
    second: int = 2

    def total(self):
        return self.first + self.second


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @classmethod
    def _missing_(cls, value):
        return cls.RED

    def shown(self):
        return self.name.lower()


class Flags(enum.IntFlag):
    A = 1
    B = 2


def main():
    Point = make()
    assert Point("3", 4) < Point(5) and Point(1).names == ["name"]
    assert repr(Point(1, 2)).endswith("Point(x=1, y=2, names=['name'])")
    assert dataclasses.asdict(dataclasses.replace(Point(1), y=7)) == {"x": 1, "y": 7, "names": ["name"]}
    Named = collections.namedtuple("Named", "a b c", defaults=[3])
    assert Named(1, 2)._replace(a=9)._asdict() == {"a": 9, "b": 2, "c": 3}
    assert Pair(1).total() == 3 and Pair._make([4, 5]).second == 5
    assert Color(2).shown() == "green" and Color(99) is Color.RED and Color["RED"].value == 1
    assert (Flags.A | Flags.B) & Flags.B == Flags.B
    assert [color.shown() for color in Color] == ["red", "green"]
