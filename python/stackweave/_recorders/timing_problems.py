"""Begins and ends of phases that do not match, in numbers and in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    _Location = tuple[str, str, int]
    _Tally = tuple[list[tuple[_Location, int]], list[tuple[str, int]]]

#: The most phases that are named in a sentence.
NAMED = 5


class Problems(NamedTuple):
    """The counts of phases whose starts and ends do not match. It is false if all is well.

    >>> with stackweave.Timing() as timing:
    ...     timing.pop()
    >>> timing.problems()
    Problems(unmatched_pops=1, left_open=0, still_open=0, lost_tokens=0)
    """

    #: Ends without an open phase on their thread. They were left out.
    unmatched_pops: int
    #: Phases that were open when one around them, or their thread, ended. They were ended then.
    left_open: int
    #: Phases that have begun and not ended yet, on all threads.
    still_open: int
    #: Frames that were not open any more on the thread that ended them: there was one pop() too many, or they began on
    #: another thread.
    lost_tokens: int

    def __bool__(self) -> bool:
        return any(self)


Problems.__module__ = "stackweave"


def sentences_of(problems: Problems, tally: _Tally, open_here: Iterable[_Location]) -> list[str]:
    left_open, unmatched = tally
    sentences = []
    if problems.unmatched_pops:
        locations = [f"{location} ({_times(count)})" for location, count in unmatched]
        first = f": first at {_listed(locations)}" if locations else ""
        sentences.append(f"{_counted(problems.unmatched_pops, 'pop')} without a push on the same thread{first}")
    if problems.left_open:
        names = [f"{described(location)} ({_times(count)})" for location, count in left_open]
        named = f": {_listed(names)}" if names else ""
        sentences.append(f"{_counted(problems.left_open, 'phase')} left open when a phase around them ended{named}")
    if problems.still_open:
        here = [described(location) for location in open_here]
        named = f"; on this thread {_listed(here)}" if here else ""
        sentences.append(f"{_counted(problems.still_open, 'phase')} not ended yet{named}")
    if problems.lost_tokens:
        sentences.append(
            f"{_counted(problems.lost_tokens, 'end')} of phases that were not open any more: "
            "there was one pop() too many inside, or the phase began on another thread"
        )
    return sentences


def described(location: _Location) -> str:
    name, filename, lineno = location
    if not filename:
        return repr(name)
    return f"{name!r} ({filename}:{lineno})" if lineno else f"{name!r} ({filename})"


def _listed(texts: list[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
