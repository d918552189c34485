"""What commands that run a program have in common in what they say at its end."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from . import _native
from ._recording import FORGOTTEN
from ._sizes import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._recorded_program import Ended
    from ._recording import Summary

#: So many files are named where a pattern would name others too.
_LISTED = 8


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
    """Other processes have files beside this one. Those that earlier runs have left there are not counted."""
    path = ended.summary.path
    found = _native.others_of_same_run(path)
    kind = "other" if ended.recording._native_options.get("subprocesses") else "forked"
    if found:
        has = f"1 {kind} process has its" if len(found) == 1 else f"{len(found):,} {kind} processes have their"
        files = [shlex.quote(_seen_from(ended.folder, each)) for each in (path, *found[:_LISTED])]
        if not _has_strangers(path, found):
            short = shlex.quote(_seen_from(ended.folder, path).removesuffix(".swv"))
            files[1:] = [f"{short}.*.swv"]
        elif len(found) > _LISTED:
            files.append("...")
        yield f"{has} own: {ended.command} {next_command} {' '.join(files)}"
    silent = ended.recording._unrecorded_children()
    if silent:
        has = "1 forked process" if silent == 1 else f"{silent:,} forked processes"
        folder = os.path.dirname(path)
        yield f"{has} could not record: nothing could be written to {_seen_from(ended.folder, folder) or folder}"


def unrecorded(ended: Ended) -> Iterator[str]:
    """A sentence if Python programs were started that have not recorded."""
    if ended.recording._native_options.get("subprocesses"):
        return
    started = _native.started_programs()
    # The interpreter does not report those of multiprocessing. It imports these modules to start the first one.
    has_spawned = any(f"multiprocessing.popen_{kind}" in sys.modules for kind in ("spawn_posix", "forkserver"))
    if started or has_spawned:
        count = count_text(started, "Python program") if started else ""
        what = " and ".join(filter(None, [count, "processes of multiprocessing" if has_spawned else ""]))
        were = "was" if started == 1 and not has_spawned else "were"
        yield f"{what} {were} started and not recorded: --subprocesses records such processes, too"


def _has_strangers(path: str, found: list[str]) -> bool:
    """Whether files of other runs have names like those of this one. No glob: it needs the program's module `re`."""
    folder, name = os.path.split(path.removesuffix(".swv"))
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return True
    alike = (each for each in there if each.startswith(f"{name}.") and each.endswith(".swv"))
    return {os.path.join(folder, each) for each in alike if each != os.path.basename(path)} != set(found)


def _seen_from(folder: str, path: str) -> str:
    return os.path.relpath(path, folder) if os.path.dirname(path) == folder else path
