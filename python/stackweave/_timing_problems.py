"""What a program told of its phases that does not fit together, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    _Place = tuple[str, str, int]
    _Tally = tuple[list[tuple[_Place, int]], list[tuple[str, int]]]

#: So many phases are named in a sentence.
NAMED = 5


class Problems(NamedTuple):
    """What does not fit together in a timing recording. All is well if it is false."""

    #: Ends that came where nothing was open on their thread. They were left out.
    unmatched_pops: int
    #: Phases that were open when one around them ended, or their thread. They were ended there.
    left_open: int
    #: Phases that have begun and not ended yet, on all threads.
    still_open: int
    #: Frames that were not open any more on the thread that ended them: a pop() was one too many, or they were begun on
    #: another thread.
    lost_tokens: int

    def __bool__(self) -> bool:
        return any(self)


Problems.__module__ = "stackweave"


def sentences_of(problems: Problems, tally: _Tally, open_here: Iterable[_Place]) -> list[str]:
    left_open, unmatched = tally
    sentences = []
    if problems.unmatched_pops:
        places = [f"{place} ({_times(count)})" for place, count in unmatched]
        first = f": first at {_listed(places)}" if places else ""
        sentences.append(f"{_counted(problems.unmatched_pops, 'pop')} without a push on the same thread{first}")
    if problems.left_open:
        names = [f"{described(place)} ({_times(count)})" for place, count in left_open]
        named = f": {_listed(names)}" if names else ""
        sentences.append(f"{_counted(problems.left_open, 'phase')} left open when what is around ended{named}")
    if problems.still_open:
        here = [described(place) for place in open_here]
        named = f"; on this thread {_listed(here)}" if here else ""
        sentences.append(f"{_counted(problems.still_open, 'phase')} not ended yet{named}")
    if problems.lost_tokens:
        sentences.append(
            f"{_counted(problems.lost_tokens, 'end')} of frames that were not open any more: "
            "a pop() inside was one too many, or the frame began on another thread"
        )
    return sentences


def described(place: _Place) -> str:
    name, filename, line = place
    if not filename:
        return repr(name)
    return f"{name!r} ({filename}:{line})" if line else f"{name!r} ({filename})"


def _listed(texts: list[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
