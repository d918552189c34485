"""Kinds of options: which values a keyword accepts, and how an option is written in a command."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, TypeVar

from .._sizes import size_of

if TYPE_CHECKING:
    from collections.abc import Callable

_Number = TypeVar("_Number", int, float)

#: The number of each unit in a second.
UNITS = {"ns": 1e9, "us": 1e6, "µs": 1e6, "\u03bcs": 1e6, "ms": 1e3, "s": 1.0, "min": 1 / 60}


class Kind:
    """Checks the values of a keyword, and reads what is written in a command.

    A checked value is accepted again: programs that are started by a recorded one get checked values.
    """

    #: The name of the value in help texts.
    metavar: str = "VALUE"
    #: Reads the text of a command. Other texts than numbers are checked with the keyword.
    parse: Callable[[str], object] = str

    def checked(self, name: str, value: object) -> Any:
        """Returns the value in the form of the recorders, or raises TypeError or ValueError."""
        raise NotImplementedError

    def argument(self, default: object) -> dict[str, Any]:
        """Returns the keywords of argparse's add_argument()."""
        return {"metavar": self.metavar, "type": self.parse}


class Flag(Kind):
    """True or False. In a command it is a word that stands for what is not the default: --c-calls, --no-gc."""

    def checked(self, name: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
        return value

    def argument(self, default: object) -> dict[str, Any]:
        return {"action": "store_const", "const": not default}


class Size(Kind):
    """Bytes, as a number or as a text such as "64MB"."""

    metavar = "SIZE"

    def checked(self, name: str, value: object) -> int:
        return size_of(name, value)


class Seconds(Kind):
    """A number of seconds, more than 0."""

    metavar = "SECONDS"

    @staticmethod
    def parse(text: str) -> object:
        return _read(float, text, "a number of seconds")

    def checked(self, name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be greater than 0 seconds, but is {value!r}")
        return float(value)


def whole_number(text: str) -> int:
    """Returns the number that the text of a command is."""
    return _read(int, text, "a whole number")


def _read(number: Callable[[str], _Number], text: str, what: str) -> _Number:
    """Returns the number that a text is, or raises the error of argparse for a sentence."""
    try:
        return number(text)
    except ValueError:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is not {what}") from None


def number_or_text(text: str) -> float | str:
    """Returns the number that a text is, or else the text."""
    try:
        return float(text)
    except ValueError:
        return text


class Duration(Kind):
    """Seconds, as a number or as a text such as "10us" or "1.5 ms"; 0 is allowed."""

    metavar = "TIME"

    @staticmethod
    def parse(text: str) -> object:
        return number_or_text(text)

    def checked(self, name: str, value: object) -> float:
        if isinstance(value, str):
            parts = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(\S+)\s*", value)
            unit = UNITS.get(parts[2]) if parts else None
            if parts is None or unit is None:
                raise ValueError(f'{name} must be a time like "10us" or "1.5 ms", but is {value!r}')
            return float(parts[1]) / unit
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f'{name} must be a number of seconds or a time like "10us", not {type(value).__name__}')
        if not (value >= 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be at least 0 seconds, but is {value!r}")
        return float(value)


class Count(Kind):
    """A whole number from `least` on, with at most this many bits."""

    metavar = "NUMBER"

    @staticmethod
    def parse(text: str) -> object:
        return whole_number(text)

    def __init__(self, bits: int = 32, least: int = 1) -> None:
        self._bits = bits
        self._least = least

    def checked(self, name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
        if not self._least <= value < 1 << self._bits:
            lowest = f"greater than {self._least - 1}" if self._least else "at least 0"
            raise ValueError(f"{name} must be {lowest} and less than 2**{self._bits}, but is {value!r}")
        return int(value)


class Choice(Kind):
    """One of some words."""

    def __init__(self, *words: str, metavar: str = "") -> None:
        self.words = words
        self.metavar = metavar or "|".join(words)

    def checked(self, name: str, value: object) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise ValueError(f"{name} must be {listed(self.words, 'or')}, but is {value!r}")
        return value

    def argument(self, default: object) -> dict[str, Any]:
        return {"metavar": self.metavar, "choices": self.words}


class Choices(Choice):
    """Any number of some words. A single one may be a str. In a command they are separated by commas."""

    def checked(self, name: str, value: Any) -> frozenset[str]:  # type: ignore[override]
        chosen = frozenset([value] if isinstance(value, str) else value)
        for word in chosen:
            if word not in self.words:
                raise ValueError(f"{name} may hold {listed(self.words, 'and')}, but not {word!r}")
        return chosen

    def argument(self, default: object) -> dict[str, Any]:
        return {"metavar": self.metavar, "type": lambda text: text.split(",")}


class Patterns(Kind):
    """Patterns that select functions. A single one may be a str. In a command the option is repeated."""

    def __init__(self, metavar: str = "PATTERN") -> None:
        self.metavar = metavar

    def checked(self, name: str, value: Any) -> tuple[str, ...]:
        try:
            patterns: tuple[Any, ...] = (value,) if isinstance(value, str) else tuple(value)
        except TypeError:
            raise TypeError(f"{name} must be patterns of functions, not {type(value).__name__}") from None
        for pattern in patterns:
            if not isinstance(pattern, str):
                raise TypeError(f"{name} must be patterns of functions, which are texts, not {type(pattern).__name__}")
            if not pattern.split(":", 1)[-1]:
                raise ValueError(f"{name} has a pattern without a text: {pattern!r}")
        return patterns

    def argument(self, default: object) -> dict[str, Any]:
        return {"metavar": self.metavar, "action": "append"}


def listed(words: tuple[str, ...], last: str) -> str:
    """Returns a text such as `"a", "b" or "c"`."""
    quoted = [f'"{word}"' for word in words]
    return f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
