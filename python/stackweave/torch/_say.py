"""What is said to whoever runs the program, who must not be hurt by it."""

from __future__ import annotations

import contextlib
import sys

from .._printable import printable


def say(sentence: str) -> None:
    """On standard error. If that is closed, or a pipe that nobody reads, there is nobody to say it to."""
    stream = sys.stderr
    if stream is not None:
        with contextlib.suppress(Exception):
            print(f"stackweave: {printable(sentence)}", file=stream, flush=True)
