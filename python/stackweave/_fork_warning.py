"""Python's warning about forks in a process with several threads, where all threads but one are Stackweave's.

From 3.12 on, os.fork() warns if the kernel counts more than one thread. The threads of a recording count, so a program
would see a warning that it does not get without the recording, and a forked child would import modules to show it.
"""

from __future__ import annotations

import os
import sys
import warnings

_TASKS = "/proc/self/task"
#: What the kernel calls our threads begins so.
_OURS = b"stackweave"


class _Warning:
    """Stands where a filter of warnings has the pattern of its messages. Matches the warning of one fork."""

    def match(self, text: str) -> bool:
        if not (text.startswith("This process (pid=") and " is multi-threaded" in text):
            return False
        # Whoever calls this has its filter then, and looks at no other.
        forget()
        return True


_filter = ("ignore", _Warning(), DeprecationWarning, None, 0)


def before_fork() -> None:
    """Has the warning ignored that a fork is about to give, if it is due to our threads alone.

    Some versions of Python warn before they call what is registered for the parent, others after it: so the
    warning itself ends this, and the program finds the filters that it has set.
    """
    forget()
    if sys.version_info >= (3, 12) and _is_due_to_us():
        _filters().insert(0, _filter)


def forget() -> None:
    """Leaves warnings alone again."""
    filters = _filters()
    while _filter in filters:
        filters.remove(_filter)


def _filters() -> list[object]:
    filters = warnings.filters
    # A program may have put a sequence there that can't be changed.
    return filters if isinstance(filters, list) else []


def _is_due_to_us() -> bool:
    """Whether there are threads of ours, and no more than one other. If that can't be known, the warning stays."""
    try:
        tasks = [_is_ours(task) for task in os.listdir(_TASKS)]
    except OSError:
        return False
    return any(tasks) and tasks.count(False) <= 1


def _is_ours(task: str) -> bool:
    try:
        with open(f"{_TASKS}/{task}/comm", "rb", buffering=0) as name:
            return name.read(len(_OURS)) == _OURS
    except (FileNotFoundError, ProcessLookupError):
        return True  # it has ended meanwhile
