"""The options of the recorders of memory, as people write them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from .._sizes import size_of
from .call_options import count_of, optional_count
from .options import flag, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable

MODES = ("history", "aggregate", "sampled")
#: When a snapshot is written, besides at the end of a recording.
MOMENTS = ("exit", "exception", "memory-error")
SAMPLE_EVERY = "512KiB"
#: The default size of what may wait to be written. A larger buffer is not faster, and is memory of the measured
#: program.
BUFFER = "8MiB"


def mode_of(value: object) -> str:
    if not isinstance(value, str) or value not in MODES:
        raise ValueError(f'mode must be "history", "aggregate" or "sampled", but is {value!r}')
    return value


def moments_of(value: Iterable[str]) -> frozenset[str]:
    moments = frozenset([value] if isinstance(value, str) else value)
    for moment in moments:
        if moment not in MOMENTS:
            raise ValueError(f'dump_on may hold "exit", "exception" and "memory-error", but not {moment!r}')
    return moments


def signal_of(value: object) -> int | None:
    """Returns the number of a signal, given the number or the name, with or without SIG."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f'dump_signal must be a signal like signal.SIGUSR1 or "USR1", not {type(value).__name__}')
    found: object = value
    if isinstance(value, str):
        name = value.upper()
        found = getattr(signal, name if name.startswith("SIG") else f"SIG{name}", None)
    if found not in signal.valid_signals() or found in (signal.SIGKILL, signal.SIGSTOP):
        raise ValueError(f'dump_signal must be a signal like signal.SIGUSR1 or "USR1", but is {value!r}')
    return int(found)  # type: ignore[call-overload, no-any-return]


def recorder_options(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options in the form of the native module."""
    return {
        "mode": mode_of(given["mode"]),
        "sample_every": size_of("sample_every", given["sample_every"]),
        "native": flag("native", given["native"]),
        "python_allocators": flag("python_allocators", given["python_allocators"]),
        "free_stacks": flag("free_stacks", given["free_stacks"]),
        "mappings": flag("mappings", given["mappings"]),
        # Only if it is False: programs that are started from here record their own memory.
        **({} if flag("own_memory", given["own_memory"]) else {"own_memory": False}),
        "depth": optional_count("depth", given["depth"]),
        "temporary": count_of("temporary", given["temporary"]),
        "curve_every": seconds_of("curve_every", given["curve_every"]),
        "dump_signal": signal_of(given["dump_signal"]),
        "dump_at_rss": None if given["dump_at_rss"] is None else size_of("dump_at_rss", given["dump_at_rss"]),
    }


def check_together(mode: str, ring: object) -> None:
    if ring is not None and mode == "aggregate":
        raise ValueError('ring keeps the last events, and mode="aggregate" writes none: leave one of them out')
