"""Which file a number is of. A program may close files that it did not open, and then the number is somebody else's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def identity_of(number: int, look: Callable[[int], os.stat_result] = os.fstat) -> tuple[int, int] | None:
    """None if there is none."""
    try:
        found = look(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino
