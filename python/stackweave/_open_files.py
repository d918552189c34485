"""The identity of open files. A program may close files that it did not open, and reuse their numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def identity_of(number: int, stat: Callable[[int], os.stat_result] = os.fstat) -> tuple[int, int] | None:
    """Returns the device and inode of an open file, or None if the number is not open."""
    try:
        found = stat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino
