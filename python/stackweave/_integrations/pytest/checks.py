"""Measures the memory of a test, and fails it if it uses too much. Imported with the first test that is measured."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import re
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ... import _native
from ..._options.kinds import Count, Flag
from ..._printable import printable
from ..._reading.memory_text import stack_lines
from ..._reading.memory_usage import UsageRow
from ..._recorders.memory import MemoryRecorder, current_recorder
from ..._sizes import count_text, size_of, size_text
from ...pytest_plugin import PEAK, recording_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..._native import Frame
    from ..._reading.memory_usage import Usage

#: The number of stacks that a failure shows, and of frames of each.
STACKS = 5
DEPTH = 8
#: The functions here that call the function of a test.
RUNNERS = ("run_test", "run_test_asynchronously")


class Limit(NamedTuple):
    #: The size as it was written.
    text: str
    bytes: int
    python_allocators: bool


class Leaks(NamedTuple):
    text: str
    bytes: int
    warmups: int
    runs: int
    python_allocators: bool


def limit_of(mark: pytest.Mark) -> Limit:
    def options(size: str | int, *, python_allocators: bool = False) -> Limit:
        return Limit(*_size(size), Flag().checked("python_allocators", python_allocators))

    return _options_of(mark, options)  # type: ignore[no-any-return]


def leaks_of(mark: pytest.Mark) -> Leaks:
    def options(size: str | int, *, warmups: int = 1, runs: int = 3, python_allocators: bool = True) -> Leaks:
        warmups = Count(least=0).checked("warmups", warmups)
        return Leaks(
            *_size(size), warmups, Count().checked("runs", runs), Flag().checked("python_allocators", python_allocators)
        )

    return _options_of(mark, options)  # type: ignore[no-any-return]


def _size(size: object) -> tuple[str, int]:
    bytes_ = 0 if size == 0 else size_of("the size", size)
    return size if isinstance(size, str) else size_text(bytes_), bytes_


def _options_of(mark: pytest.Mark, options: Callable[..., Any]) -> Any:
    if not mark.args and "size" not in mark.kwargs:
        pytest.fail(f'@pytest.mark.{mark.name} needs a size, as in {mark.name}("24 MB")', pytrace=False)
    try:
        return options(*mark.args, **mark.kwargs)
    except (TypeError, ValueError) as error:
        sentence = re.sub(r"\S+\.options\(\)", "it", str(error))
    pytest.fail(f"@pytest.mark.{mark.name}: {sentence}", pytrace=False)


def measured(
    item: pytest.Item, function: Callable[..., Any], limit: pytest.Mark | None, leaks: pytest.Mark | None
) -> Callable[..., Any]:
    """Returns the function of a test with a recorder around it."""
    keep_hooks()
    check = Check(item, limit_of(limit) if limit else None, leaks_of(leaks) if leaks else None)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_test_asynchronously(*args: Any, **kwargs: Any) -> None:
            for _ in check.steps():
                await function(*args, **kwargs)

        return run_test_asynchronously

    @functools.wraps(function)
    def run_test(*args: Any, **kwargs: Any) -> Any:
        result = None
        for _ in check.steps():
            result = function(*args, **kwargs)
        return result

    return run_test


#: Set from the first test that is measured to the end of the run: hooks are installed once.
_kept: _native.KeptMemoryHooks | None = None


def keep_hooks() -> None:
    """Keeps the hooks of memory recorders installed between tests."""
    global _kept
    if _kept is None:
        _kept = _native.KeptMemoryHooks()


def release_hooks() -> None:
    global _kept
    kept, _kept = _kept, None
    if kept is not None:
        kept.close()


class Check:
    """Checks the limits of one test."""

    def __init__(self, item: pytest.Item, limit: Limit | None, leaks: Leaks | None) -> None:
        self._item = item
        self._limit = limit
        self._leaks = leaks

    def steps(self) -> Iterator[None]:
        """Yields each time that the test is to run. Fails the test in between, or at the end."""
        if current_recorder() is not None:
            yield from self._unmeasured(f"memory is recorded already, by {current_recorder()!r}")
            return
        if self._limit is not None or self._leaks is None:
            yield from self._limited()
        if self._leaks is not None:
            yield from self._checked_for_leaks(self._leaks)

    def _unmeasured(self, why: str) -> Iterator[None]:
        """Runs the test without measuring it. A test with a limit fails; otherwise the peak is not listed."""
        yield
        sentence = f"{self._item.name} is not measured: {why}"
        if self._limit is not None or self._leaks is not None:
            pytest.fail(printable(sentence), pytrace=False)
        warnings.warn(sentence, pytest.PytestWarning, stacklevel=2)

    def _check_complete(self, recorder: MemoryRecorder) -> None:
        """Fails a test with a mark if its recording lacks something that counts."""
        summary = recorder.stop()
        lost = [f"{count_text(count, 'event')} lost ({reason})" for reason, count in summary.lost.items() if count]
        if lost or summary.error is not None:
            why = summary.error or ", ".join(lost)
            pytest.fail(printable(f"{self._item.name} is not measured: {why}"), pytrace=False)

    def _check_still_recording(self, recorder: MemoryRecorder, mark: Limit | Leaks | None) -> None:
        """Fails a test with a mark that has stopped or paused its own recording."""
        if mark is not None and recorder.state != "recording":
            pytest.fail(f"{self._item.name} is not measured: it has {recorder.state} its recording", pytrace=False)

    def _limited(self) -> Iterator[None]:
        with self._folder() as folder, self._recorder(folder, self._limit) as recorder:
            yield
            self._check_still_recording(recorder, self._limit)
            most: int = recorder.recorder_stats()["peak_bytes"]
            # Naming stacks takes time: only a failure needs them.
            peak = recorder.live().peak() if self._limit is not None and most > self._limit.bytes else None
        if self._limit is not None:
            self._check_complete(recorder)
        if not self._is_measured(recorder, self._limit):
            return
        self._item.user_properties.append((PEAK, most))
        if self._limit is not None and peak is not None and peak.bytes > self._limit.bytes:
            over = size_text(peak.bytes - self._limit.bytes)
            allowed = f"{self._limit.text} are allowed: {over} too much"
            _fail(
                f"{self._item.name} has {size_text(peak.bytes)} in use at its peak, and {allowed}",
                peak.rows,
                peak.bytes,
            )

    def _checked_for_leaks(self, leaks: Leaks) -> Iterator[None]:
        with self._folder() as folder, self._recorder(folder, leaks) as recorder:
            for _ in range(leaks.warmups):
                yield
            before = _in_use(recorder)
            for _ in range(leaks.runs):
                yield
            self._check_still_recording(recorder, leaks)
            rows = growth(before, _in_use(recorder))
        self._check_complete(recorder)
        self._is_measured(recorder, leaks)
        grown = sum(row.bytes for row in rows)
        if grown > leaks.bytes * leaks.runs:
            each = f"{size_text(grown / leaks.runs)} more in use each time that it is run"
            runs = f"{count_text(leaks.runs, 'run')} after {leaks.warmups} to warm up"
            _fail(f"{self._item.name} has {each}, and {leaks.text} are allowed ({runs})", rows, grown)

    def _is_measured(self, recorder: MemoryRecorder, mark: Limit | Leaks | None) -> bool:
        """Returns False if another tool has the hooks, so that there is no figure. A test with a limit fails."""
        stats = recorder.recorder_stats()
        if not stats["is_largely_foreign"]:
            return True
        sentence = stats["foreign_hooks"]
        if mark is not None:
            pytest.fail(f"the memory of {self._item.name} can't be measured. {sentence}", pytrace=False)
        warnings.warn(f"{self._item.name} is not measured. {sentence}", pytest.PytestWarning, stacklevel=2)
        return False

    def _folder(self) -> Any:
        kept = self._item.config.getoption("stackweave_peaks_folder")
        return _Kept(kept) if kept else tempfile.TemporaryDirectory(prefix="stackweave-")

    def _recorder(self, folder: str, mark: Limit | Leaks | None) -> MemoryRecorder:
        return MemoryRecorder(
            recording_path(self._item, folder),
            mode="aggregate",
            python_allocators=mark is not None and mark.python_allocators,
            overwrite=True,
        )


class _Kept:
    """A folder that is not removed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> str:
        os.makedirs(self._folder, exist_ok=True)
        return self._folder

    def __exit__(self, *_: object) -> None:
        pass


def _in_use(recorder: MemoryRecorder) -> Usage:
    gc.collect()
    return recorder.live().current()


def growth(before: Usage, after: Usage) -> tuple[UsageRow, ...]:
    """Returns by how much the memory in use of each stack has grown or shrunk, the largest growth first."""
    rows: dict[tuple[tuple[Frame, ...], str], tuple[UsageRow, int, int]] = {}
    for usage, sign in ((before, -1), (after, 1)):
        for row in usage.rows:
            if not _is_of_test(row.stack):
                continue
            key = (row.stack, row.allocator)
            _, bytes_, blocks = rows.get(key, (row, 0, 0))
            rows[key] = (row, bytes_ + sign * row.bytes, blocks + sign * row.blocks)
    found = [row._replace(bytes=bytes_, blocks=blocks) for row, bytes_, blocks in rows.values() if bytes_ or blocks]
    return tuple(sorted(found, key=lambda row: row.bytes, reverse=True))


def _fail(sentence: str, rows: tuple[UsageRow, ...], total: int) -> None:
    shown = tuple(row._replace(stack=_inside_of_test(row.stack)) for row in rows)
    pytest.fail(printable("\n".join([sentence, *stack_lines(shown, total, STACKS, DEPTH)])), pytrace=False)


def _is_of_test(stack: tuple[Frame, ...]) -> bool:
    """Returns whether the stack is of the test, and not of its measurement. Other threads are of the test."""
    ours = next((frame for frame in stack if frame.filename == __file__), None)
    return ours is None or ours.name in RUNNERS


def _inside_of_test(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Returns the frames of the test, without our own and those of pytest."""
    end = next((index for index, frame in enumerate(stack) if frame.filename == __file__), None)
    return stack[:end]
