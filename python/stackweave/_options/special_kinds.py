"""Kinds of options of which there is one each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._sizes import size_of
from .kinds import Count, Duration, Kind, Seconds, number_or_text

if TYPE_CHECKING:
    from .option import Option

#: The meaning of demote=True: a number of calls, and their mean duration in seconds.
DEMOTION = (10_000, 1e-6)
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Ring(Kind):
    """How much of the past is kept: bytes, seconds, or both as a pair."""

    metavar = "SIZE|SECONDS"

    @staticmethod
    def parse(text: str) -> object:
        size, comma, seconds = text.partition(",")
        return (size, number_or_text(seconds)) if comma else number_or_text(text)

    def checked(self, name: str, value: object) -> tuple[int | None, float | None]:
        """Returns bytes and seconds; None is no limit."""
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(f"{name} must be a size, a number of seconds or both as a pair, but is {value!r}")
            return size_of(name, value[0]), Seconds().checked(name, value[1])
        if isinstance(value, str):
            return size_of(name, value), None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} must be a size, a number of seconds or both as a pair, not {type(value).__name__}")
        return None, Seconds().checked(name, value)


class _OptionalValue(Kind):
    """True, or more exactly a value. In a command the value follows an equals sign."""

    def argument(self, default: object) -> dict[str, Any]:
        return {"metavar": self.metavar, "type": self.parse, "nargs": "?", "const": True}


class Demotion(_OptionalValue):
    """From which number of calls on a function is not traced any more, if their mean duration is below the second."""

    metavar = "CALLS,TIME"

    @staticmethod
    def parse(text: str) -> object:
        calls, _, time = text.partition(",")
        return (int(calls) if calls.isdigit() else calls, number_or_text(time))

    def checked(self, name: str, value: object) -> tuple[int, float] | None:
        if value is False:
            return None
        if value is True:
            return DEMOTION
        if not isinstance(value, tuple):
            raise TypeError(f"{name} must be True or a pair of calls and seconds, not {type(value).__name__}")
        if len(value) != 2:
            raise ValueError(f"{name} must be True or a pair of calls and seconds, but is {value!r}")
        return Count().checked(name, value[0]), Duration().checked(name, value[1])


class Logs(_OptionalValue):
    """Which log records are recorded: all, those of a logger, those from a level on, or a pair of both."""

    metavar = "LOGGER|LEVEL"

    @staticmethod
    def parse(text: str) -> object:
        logger, comma, level = text.partition(",")
        if comma:
            return logger, int(level) if level.isdigit() else level.upper()
        return int(text) if text.isdigit() else text

    def checked(self, name: str, value: object) -> tuple[str, int] | None:
        """Returns the logger ("": all loggers) and the lowest level."""
        if value is False:
            return None
        if value is True:
            return "", 0
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
            return value[0], _level(name, value[1])
        if isinstance(value, int) or (isinstance(value, str) and value in LEVELS):
            return "", _level(name, value)
        if isinstance(value, str):
            return value, 0
        raise TypeError(
            f'{name} must be True, the name of a logger, a level such as "INFO", or a name and a level,'
            f" but is {value!r}"
        )


def _level(name: str, value: object) -> int:
    import logging

    level = logging.getLevelName(value) if isinstance(value, str) else value
    if isinstance(level, bool) or not isinstance(level, int):
        raise ValueError(f'{name} must have a level such as "INFO" or 20, but has {value!r}')
    return level


class Signal(Kind):
    """A signal by its number or its name, with or without SIG."""

    metavar = "SIGNAL"

    def checked(self, name: str, value: object) -> int:
        import signal

        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise TypeError(f'{name} must be a signal like "USR1", not {type(value).__name__}')
        found: object = value
        if isinstance(value, str):
            upper = value.upper()
            found = getattr(signal, upper if upper.startswith("SIG") else f"SIG{upper}", None)
        if found not in signal.valid_signals() or found in (signal.SIGKILL, signal.SIGSTOP):
            raise ValueError(f'{name} must be a signal like "USR1", but is {value!r}')
        return int(found)  # type: ignore[call-overload, no-any-return]


class Part(Kind):
    """A part of what `record` records: True, False, or a dict of options."""

    def __init__(self, options: tuple[Option, ...]) -> None:
        self._options = {option.name: option for option in options}

    def checked(self, name: str, value: object) -> dict[str, Any] | None:
        """Returns the options of the part with their defaults, or None if it is not recorded."""
        if value is False:
            return None
        given = {} if value is True else value
        if not isinstance(given, dict):
            raise TypeError(f"{name} must be True, False or a dict of options, not {type(value).__name__}")
        for option in given:
            if option not in self._options:
                raise ValueError(f"{name} has no option {option!r}: there are {', '.join(self._options)}")
        return {each.name: each.checked(given.get(each.name, each.default)) for each in self._options.values()}

    def argument(self, default: object) -> dict[str, Any]:
        return {"action": "store_const", "const": False}
