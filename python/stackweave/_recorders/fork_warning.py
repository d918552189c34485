"""Python's warning about forks in a process with several threads, where all threads but one are Stackweave's.

From 3.12 on, os.fork() warns if the kernel counts more than one thread. The threads of a recording count, so a program
would see a warning that it does not get without the recording, and a forked child would import modules to show it.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

_TASKS = "/proc/self/task"
#: The names of our threads begin with this.
_OURS = b"stackweave"


class _Warning:
    """The pattern of messages of a warning filter. It matches the warning of one fork."""

    def match(self, text: str) -> bool:
        if not (text.startswith("This process (pid=") and " is multi-threaded" in text):
            return False
        # The caller uses the filter that matched, and no other.
        forget()
        return True


_filter = ("ignore", _Warning(), DeprecationWarning, None, 0)


def before_fork() -> None:
    """Suppresses the warning that the next fork gives, if it is due to our threads alone.

    Some versions of Python warn before they call the functions that are registered for the parent, others after them.
    So the warning itself removes the filter, and the program finds the filters that it has set.
    """
    forget()
    if sys.version_info < (3, 12) or not _is_due_to_us():
        return
    global _set_aside
    filters = warnings.filters
    if isinstance(filters, list):
        filters.insert(0, _filter)
    elif isinstance(filters, tuple):
        # The program has set a tuple. From 3.15 on, a warning that finds no list is an error, and the fork fails.
        _set_aside = filters
        warnings.filters = [_filter, *filters]


def forget() -> None:
    """Removes the filter."""
    global _set_aside
    filters = warnings.filters
    if not isinstance(filters, list) or _filter not in filters:
        return
    while _filter in filters:
        filters.remove(_filter)
    if _set_aside is not None:
        warnings.filters = _set_aside
        _set_aside = None


#: The filters of the program, while ours replace them.
_set_aside: tuple[Any, ...] | None = None


def _is_due_to_us() -> bool:
    """Returns whether there are threads of ours and at most one other. Returns False if that is not known."""
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
        return True  # it has ended since
