"""What is said at the end of `stackweave trace`. Imported then."""

from __future__ import annotations

import glob
import os
import shlex
from typing import TYPE_CHECKING, Any

from ._recording import FORGOTTEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._recording import Summary
    from ._trace import Trace

MOST_NAMES = 3


def lines(command: str, trace: Trace, summary: Summary, seconds: float, folder: str) -> Iterator[str]:
    """One about the recording, and one for each thing that is missing there."""
    path = _seen_from(folder, summary.path)
    stats = trace._tracer_stats or {}
    if summary.error is not None:
        yield f"stackweave: the recording {path} could not be written: {summary.error}\n"
    else:
        quoted = shlex.quote(path)
        calls = f"{_count(stats.get('calls', 0), 'call')} in {_duration(seconds)}"
        if summary.lost.get(FORGOTTEN):
            calls = f"the last of {calls}"
        size = f"{path} ({_size(summary.bytes)})"
        yield f"stackweave: {calls}, recorded in {size}. Next: {command} top {quoted}\n"
    for sentence in (*_left_out(stats, summary), *_others(command, summary.path, folder)):
        yield f"stackweave: {sentence}\n"


def _left_out(stats: dict[str, Any], summary: Summary) -> Iterator[str]:
    if stats.get("dropped"):
        yield f"{_count(stats['dropped'], 'more call')} came after --max-events, and were only counted"
    demoted = stats.get("demoted") or []
    if demoted:
        names = [each["name"] for each in demoted[:MOST_NAMES]]
        more = f" and {len(demoted) - MOST_NAMES:,} more" if len(demoted) > MOST_NAMES else ""
        said = f"{_count(len(demoted), 'function')} called often for no time, and not traced to the end"
        yield f"{said} (--demote): {', '.join(names)}{more}"
    if stats.get("stepped_aside"):
        yield f"deeper calls are missing where the C stack was nearly full: {_count(stats['stepped_aside'], 'time')}"
    if stats.get("untold_threads"):
        threads = _count(stats["untold_threads"], "thread")
        yield f"calls are missing on {threads}: the program has set a profile function of its own there"
    for reason, count in summary.lost.items():
        if count and reason != FORGOTTEN:
            yield f"{_count(count, 'event')} lost: {reason}"


def _others(command: str, path: str, folder: str) -> Iterator[str]:
    """Forked processes have files beside this one."""
    stem = path.removesuffix(".swv")
    others = [each for each in glob.glob(f"{glob.escape(stem)}.*.swv") if each[len(stem) + 1 : -4].isdigit()]
    if others:
        is_one = len(others) == 1
        processes = "1 forked process has its" if is_one else f"{len(others):,} forked processes have their"
        short = _seen_from(folder, path)
        yield f"{processes} own: {command} top {shlex.quote(short)} {shlex.quote(short.removesuffix('.swv'))}.*.swv"


def _seen_from(folder: str, path: str) -> str:
    """The path as short as it can be, where the user is."""
    return os.path.relpath(path, folder) if os.path.dirname(path) == folder else path


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def _size(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
