"""Implicit calls of classes: creation, attributes, operators, inheritance, and the end of objects."""

import weakref


class Meta(type):
    def __new__(cls, name, bases, namespace, **options):
        return super().__new__(cls, name, bases, namespace)

    def __init__(cls, name, bases, namespace, **options):
        super().__init__(name, bases, namespace)

    def __call__(cls, *arguments):
        return super().__call__(*arguments)

    @classmethod
    def __prepare__(cls, name, bases, **options):
        return {}


class Descriptor:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name, None)

    def __set__(self, instance, value):
        setattr(instance, self.name, value)


def build():
    class Base(metaclass=Meta, flag=True):
        field = Descriptor()

        def __new__(cls, *arguments):
            return super().__new__(cls)

        def __init__(self, value):
            self.field = value

        def __init_subclass__(cls, **options):
            super().__init_subclass__(**options)

        def describe(self):
            return f"base {self.field}"

        @property
        def twice(self):
            return self.field * 2

        @twice.setter
        def twice(self, value):
            self.field = value // 2

        @staticmethod
        def static(value):
            return value

        @classmethod
        def of(cls, value):
            return cls(cls.static(value))

    class Left(Base):
        def describe(self):
            return "left " + super().describe()

    class Right(Base):
        def describe(self):
            return "right " + super().describe()

    class Both(Left, Right):
        def describe(self):
            return "both " + super().describe()

    return Both


class Number:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Number(self.value + getattr(other, "value", other))

    def __radd__(self, other):
        return self + other

    def __eq__(self, other):
        return self.value == other.value

    def __lt__(self, other):
        return self.value < other.value

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"Number({self.value!r})"

    def __bool__(self):
        return bool(self.value)

    def __len__(self):
        return self.value

    def __getitem__(self, index):
        if index >= self.value:
            raise IndexError(index)
        return index

    def __getattr__(self, name):
        if name.startswith("computed"):
            return name
        raise AttributeError(name)

    def __call__(self, *arguments):
        return len(arguments)

    def __contains__(self, value):
        return value == self.value


class Ending:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append(self.name())

    def name(self):
        return type(self).__name__


class BadEnding:
    def __del__(self):
        self.fail()

    def fail(self):
        raise RuntimeError("not caught")


def endings():
    import sys

    log = []
    ending = Ending(log)
    observer = weakref.ref(ending, lambda _: log.append("weak"))
    del ending
    assert observer() is None
    assert log == ["weak", "Ending"] or log == ["Ending", "weak"], log
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: log.append(str(unraisable.exc_value))
    try:
        BadEnding()
    finally:
        sys.unraisablehook = hook
    assert log[-1] == "not caught"


def main():
    thing = build().of(3)
    thing.twice = 8
    assert (thing.twice, thing.describe()) == (8, "both left right base 4")
    numbers = [Number(value) for value in (3, 1, 2)]
    assert sum(numbers) == Number(6)
    assert repr(sorted(numbers)) == "[Number(1), Number(2), Number(3)]"
    assert len({*numbers, Number(3)}) == 3
    assert list(numbers[0]) == [0, 1, 2]
    assert numbers[0].computed_x == "computed_x" and not hasattr(numbers[0], "other")
    assert numbers[0](1, 2) == 2 and 3 in numbers[0] and numbers[0]
    assert max(numbers) == Number(3)
    endings()
