"""Messages to the user of a recorded program."""

from __future__ import annotations

import contextlib
import sys

from ._printable import printable


def print_message(sentence: str) -> None:
    """Prints a sentence on standard error. Never raises: standard error may be closed, or a pipe without a reader."""
    stream = sys.stderr
    if stream is not None:
        with contextlib.suppress(Exception):
            print(f"stackweave: {printable(sentence)}", file=stream, flush=True)
