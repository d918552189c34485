"""The lines at the end that the commands that run a program share."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from .. import _native
from .._recorders.recorder import FORGOTTEN
from .._sizes import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._recorders.recorder import Summary
    from .recorded_program import Ended

#: The most files that are named where a pattern would match others, too.
_LISTED = 8


def recorded_in(ended: Ended) -> str:
    """Returns the path, relative to the current folder if it is there."""
    return _seen_from(ended.folder, ended.summary.path)


def next_steps(ended: Ended, *commands: str) -> str:
    """Returns a text with commands that show the recording."""
    path = shlex.quote(recorded_in(ended))
    return "Next: " + ", or ".join(f"{ended.command} {command} {path}" for command in commands)


def losses(summary: Summary) -> Iterator[str]:
    """Yields a sentence for each reason why events are missing."""
    for reason, count in summary.lost.items():
        if count and reason != FORGOTTEN:
            yield f"{count_text(count, 'event')} lost: {reason}"


def others(ended: Ended, next_command: str) -> Iterator[str]:
    """Yields sentences about the files of other processes of this run."""
    path = ended.summary.path
    found = _native.other_recordings_of_run(path)
    kind = "other" if ended.recorder._native_options.get("subprocesses") else "forked"
    if found:
        has = f"1 {kind} process has its" if len(found) == 1 else f"{len(found):,} {kind} processes have their"
        files = [shlex.quote(_seen_from(ended.folder, each)) for each in (path, *found[:_LISTED])]
        if not _has_strangers(path, found):
            short = shlex.quote(_seen_from(ended.folder, path).removesuffix(".swv"))
            files[1:] = [f"{short}.*.swv"]
        elif len(found) > _LISTED:
            files.append("...")
        yield f"{has} own: {ended.command} {next_command} {' '.join(files)}"
    silent = ended.recorder._unrecorded_children()
    if silent:
        has = "1 forked process" if silent == 1 else f"{silent:,} forked processes"
        folder = os.path.dirname(path)
        yield f"{has} could not record: nothing could be written to {_seen_from(ended.folder, folder) or folder}"


def unwritten(ended: Ended) -> Iterator[str]:
    """Yields a sentence about a ring of which nothing was written."""
    yield f"nothing was written to {recorded_in(ended)}: a ring is written at the moments of --dump-on"


def unrecorded(ended: Ended) -> Iterator[str]:
    """Yields a sentence if Python programs were started that have not recorded."""
    if ended.recorder._native_options.get("subprocesses"):
        return
    started = _native.started_programs()
    # The interpreter does not report processes of multiprocessing. Starting the first one imports these modules.
    has_spawned = any(f"multiprocessing.popen_{kind}" in sys.modules for kind in ("spawn_posix", "forkserver"))
    if started or has_spawned:
        count = count_text(started, "Python program") if started else ""
        what = " and ".join(filter(None, [count, "processes of multiprocessing" if has_spawned else ""]))
        were = "was" if started == 1 and not has_spawned else "were"
        yield f"{what} {were} started and not recorded: --subprocesses records such processes, too"


def _has_strangers(path: str, found: list[str]) -> bool:
    """Returns whether files of other runs have similar names. It avoids glob, which imports the program's `re`."""
    folder, name = os.path.split(path.removesuffix(".swv"))
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return True
    alike = (each for each in there if each.startswith(f"{name}.") and each.endswith(".swv"))
    return {os.path.join(folder, each) for each in alike if each != os.path.basename(path)} != set(found)


def _seen_from(folder: str, path: str) -> str:
    return os.path.relpath(path, folder) if os.path.dirname(path) == folder else path
