"""What commands that run a program have in common in what they say at its end."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from ._recording import FORGOTTEN
from ._sizes import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._recorded_program import Ended
    from ._recording import Summary


def recorded_in(ended: Ended) -> str:
    """The path as short as it can be, where the user is."""
    return _seen_from(ended.folder, ended.summary.path)


def next_steps(ended: Ended, *commands: str) -> str:
    """What to look at the recording with."""
    path = shlex.quote(recorded_in(ended))
    return "Next: " + ", or ".join(f"{ended.command} {command} {path}" for command in commands)


def losses(summary: Summary) -> Iterator[str]:
    """A sentence for each reason why events are missing."""
    for reason, count in summary.lost.items():
        if count and reason != FORGOTTEN:
            yield f"{count_text(count, 'event')} lost: {reason}"


def others(ended: Ended, next_command: str) -> Iterator[str]:
    """Other processes have files beside this one."""
    path = ended.summary.path
    stem = path.removesuffix(".swv")
    found = _files_beside(stem)
    if not found:
        return
    kind = "other" if ended.recording._native_options.get("subprocesses") else "forked"
    has = f"1 {kind} process has its" if len(found) == 1 else f"{len(found):,} {kind} processes have their"
    short = _seen_from(ended.folder, path)
    files = f"{shlex.quote(short)} {shlex.quote(short.removesuffix('.swv'))}.*.swv"
    yield f"{has} own: {ended.command} {next_command} {files}"


def _files_beside(stem: str) -> list[str]:
    """STEM.NUMBER.swv. Without glob: its regular expressions need the program's module `re`."""
    folder, name = os.path.split(stem)
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return []
    beside = [each for each in there if each.startswith(f"{name}.") and each.endswith(".swv")]
    return [os.path.join(folder, each) for each in beside if each[len(name) + 1 : -4].isdigit()]


def _seen_from(folder: str, path: str) -> str:
    return os.path.relpath(path, folder) if os.path.dirname(path) == folder else path
