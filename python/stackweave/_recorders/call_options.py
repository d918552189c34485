"""The options of a recorder of calls, as people write them."""

from __future__ import annotations

import math
import re
from typing import Any

from .._location import FOLDER
from .options import flag

MECHANISMS = {"auto": None, "monitoring": "monitoring", "eval": "eval", "profile": "profile"}
#: The meaning of demote=True: a number of calls, and their mean duration in seconds.
DEMOTION = (10_000, 1e-6)
#: The number of each unit in a second.
UNITS = {"ns": 1e9, "us": 1e6, "µs": 1e6, "\u03bcs": 1e6, "ms": 1e3, "s": 1.0, "min": 1 / 60}


def duration_of(name: str, value: object) -> float:
    """Returns the seconds of a number, or of a text such as "10us" or "1.5 ms"."""
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


def count_of(name: str, value: object, bits: int = 32) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if not 0 < value < 1 << bits:
        raise ValueError(f"{name} must be greater than 0 and less than 2**{bits}, but is {value!r}")
    return int(value)


def demotion_of(value: object) -> tuple[int, float] | None:
    """Returns the number of calls, and the mean duration, from which a function is not traced any more."""
    if value is None or value is False:
        return None
    if value is True:
        return DEMOTION
    if not isinstance(value, tuple):
        raise TypeError(f"demote must be True or a pair of calls and seconds, not {type(value).__name__}")
    if len(value) != 2:
        raise ValueError(f"demote must be True or a pair of calls and seconds, but is {value!r}")
    return count_of("demote", value[0]), duration_of("demote", value[1])


def patterns_of(name: str, value: object) -> list[str]:
    """Returns the patterns that select functions. A single one may be a str."""
    if isinstance(value, str):
        value = [value]
    try:
        patterns: list[Any] = list(value)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(f"{name} must be patterns of functions, not {type(value).__name__}") from None
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"{name} must be patterns of functions, which are texts, not {type(pattern).__name__}")
        if not pattern.split(":", 1)[-1]:
            raise ValueError(f"{name} has a pattern without a text: {pattern!r}")
    return patterns


def mechanism_of(value: object) -> str | None:
    if not isinstance(value, str) or value not in MECHANISMS:
        raise ValueError(f'mechanism must be "auto", "monitoring", "eval" or "profile", but is {value!r}')
    return MECHANISMS[value]


def optional_count(name: str, value: object, bits: int = 32) -> int | None:
    return None if value is None else count_of(name, value, bits)


def optional_flag(name: str, value: object) -> bool | None:
    return None if value is None else flag(name, value)


def tracer_options(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options in the form of the native module, without those for described calls."""
    return {
        "c_calls": flag("c_calls", given["c_calls"]),
        "mechanism": mechanism_of(given["mechanism"]),
        "include": patterns_of("include", given["include"]),
        "exclude": patterns_of("exclude", given["exclude"]),
        "own": [own_files()],
        "min_duration": duration_of("min_duration", given["min_duration"]),
        "max_depth": optional_count("max_depth", given["max_depth"]),
        "demote": demotion_of(given["demote"]),
        "max_events": optional_count("max_events", given["max_events"], 63),
        "gc": flag("gc", given["gc"]),
        "tasks": flag("tasks", given["tasks"]),
    }


def own_files() -> str:
    """Returns a pattern for the files of this package, whose calls are not recorded."""
    return "file:" + re.sub(r"([*?[])", r"[\1]", FOLDER) + "/*"
