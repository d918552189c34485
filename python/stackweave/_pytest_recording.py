"""`pytest --stackweave=trace|memory|run`: a recording for each test. Imported if that is asked for."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import shlex
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from . import _entrance
from ._memory import Memory
from ._native import StackweaveError
from ._record import Record
from ._sizes import count_text, duration_text, size_text
from ._trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ._sources import SourcedRecording

#: How many tests are listed.
LISTED = 5
#: A longer name is cut, and gets a number that tells it from others.
LONGEST_NAME = 150


class RecordedTest(NamedTuple):
    """What the report of a test tells of its recording; it may come from another process."""

    #: None if there is none.
    file: str | None
    seconds: float
    #: Of memory at its peak, where that is recorded.
    bytes: int | None
    #: Why there is none.
    aside: str | None
    failed: bool


class _MakesWay:
    """A recording of ours ends, and leaves nothing, as soon as a test records itself."""

    _has_made_way = False

    def _make_way(self) -> None:
        self._has_made_way = True
        self._abandon()  # type: ignore[attr-defined]


class _TestTrace(_MakesWay, Trace):
    pass


class _TestMemory(_MakesWay, Memory):
    pass


class _TestRecord(_MakesWay, Record):
    pass


class Recordings:
    """Records the tests of this process, and tells of those of all processes."""

    def __init__(self, config: pytest.Config, kind: str, options: dict[str, Any]) -> None:
        self._kind = kind
        self._folder = os.path.join(config.rootpath, options["folder"])
        self._is_whole: bool = options["fixtures"]
        self._only_failed: bool = options["only_failed"]
        self._began = os.getcwd()
        self._running: dict[str, OfTest] = {}
        self._told: list[tuple[str, RecordedTest]] = []

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        recorded = self._running[item.nodeid] = OfTest(self._recording(item))
        if self._is_whole:
            recorded.start()
        with recorded.stage("setup"):
            yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        recorded = self._running[item.nodeid]
        function = getattr(item, "obj", None)
        if self._is_whole or not callable(function):
            recorded.start()
            with recorded.stage("call"):
                yield
            return
        item.obj = recorded.around(function)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            item.obj = function  # type: ignore[attr-defined]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        recorded = self._running[item.nodeid]
        if not self._is_whole:
            recorded.stop()
        with recorded.stage("teardown"):
            yield
        recorded.stop()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        made = yield
        report = made.get_result()
        recorded = self._running.get(item.nodeid)
        if recorded is None:
            return
        recorded.has_failed |= bool(report.failed)
        if report.failed and report.when == "call" and recorded.is_there():
            report.sections.append(("stackweave", f"recorded in {self._shown(recorded.path)}"))
        if report.when == "teardown":
            del self._running[item.nodeid]
            report.stackweave_recorded = list(recorded.told(only_failed=self._only_failed))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = getattr(report, "stackweave_recorded", None)
        if told is not None:
            self._told.append((report.nodeid, RecordedTest(*told)))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._told:
            return
        terminalreporter.section("stackweave")
        for line in self._lines():
            terminalreporter.write_line(line)

    def _lines(self) -> Generator[str, None, None]:
        there = [(name, told) for name, told in self._told if told.file is not None]
        folder = self._shown(self._folder)
        yield f"{count_text(len(there), 'recording')} in {folder}{os.sep}{self._those_listed(len(there))}"
        by_size = self._kind == "memory"
        there.sort(key=lambda each: (each[1].bytes or 0) if by_size else each[1].seconds, reverse=True)
        for name, told in there[:LISTED]:
            cost = size_text(told.bytes or 0) if by_size else duration_text(told.seconds)
            peak = f", {size_text(told.bytes)}" if self._kind == "run" and told.bytes is not None else ""
            yield f"{cost:>10}{peak}  {name}{'  (failed)' if told.failed else ''}"
        for reason in dict.fromkeys(told.aside for _, told in self._told if told.aside):
            names = [name for name, told in self._told if told.aside == reason]
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"not recorded, because {reason}: {names[0]}{more}"
        if there:
            yield f"Next: stackweave report {shlex.quote(self._shown(there[0][1].file or ''))}"

    def _those_listed(self, number: int) -> str:
        if number == 0:
            return ""
        most = "the largest at their peak" if self._kind == "memory" else "the slowest"
        return f"; {most}:" if number > 1 else ":"

    def _shown(self, path: str) -> str:
        inside = os.path.relpath(path, self._began)
        return path if inside.startswith("..") else inside

    def _recording(self, item: pytest.Item) -> SourcedRecording | str:
        """That of a test, or why there is none."""
        has_marks = any(item.get_closest_marker(f"stackweave_{name}") for name in ("limit", "leaks"))
        if self._kind == "memory" and has_marks:
            return "its mark records its memory"
        path = os.path.join(self._folder, file_name(item.nodeid))
        try:
            _make_folder(self._folder)
            if self._kind == "trace":
                recording: SourcedRecording = _TestTrace(path, overwrite=True)
            elif self._kind == "memory":
                recording = _TestMemory(path, overwrite=True)
            else:
                recording = _TestRecord(path, memory=not has_marks, overwrite=True)
        except (OSError, StackweaveError) as error:
            return str(error)
        recording._leave_out_callers()
        return recording


class OfTest:
    """The recording of one test. Whatever happens to it, the test goes on."""

    def __init__(self, recording: SourcedRecording | str) -> None:
        self._recording = None if isinstance(recording, str) else recording
        self._aside = recording if isinstance(recording, str) else None
        self.has_failed = False
        self._began = 0.0
        self._seconds = 0.0

    @property
    def path(self) -> str:
        return self._recording.path if self._recording is not None else ""

    def start(self) -> None:
        if self._recording is None or self._recording.state != "new":
            return
        try:
            self._began = time.perf_counter()
            self._recording.start()
        except (StackweaveError, OSError) as error:
            self._aside = str(error).partition(",")[0] if "is on" in str(error) else str(error)
            self._recording = None

    def stop(self) -> None:
        if self._recording is None or self._recording.state == "new":
            return
        self._end()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is no warning of the test's
            self._recording.stop()

    def stage(self, name: str) -> Any:
        """A span of that name, while it records."""
        is_on = self._recording is not None and self._recording.state == "recording"
        return _Stage(self._recording if is_on else None, name)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of a test, which is recorded each time that it runs."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def record_coroutine(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                self.start()
                try:
                    return await _entrance.run_awaitable(function(*args, **kwargs))
                except Exception as error:
                    self._fail(error)
                    raise
                finally:
                    self._end()

            return record_coroutine

        @functools.wraps(function)
        def record_function(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            self.start()
            try:
                return _entrance.run_call(function, *args, **kwargs)
            except Exception as error:
                self._fail(error)
                raise
            finally:
                self._end()

        return record_function

    def is_there(self) -> bool:
        return self._recording is not None and self._recording.state != "new" and os.path.exists(self.path)

    def told(self, *, only_failed: bool) -> RecordedTest:
        recording = self._recording
        if recording is not None and getattr(recording, "_has_made_way", False):
            return RecordedTest(None, 0.0, None, "it records itself", self.has_failed)
        if recording is None or not self.is_there():
            return RecordedTest(None, 0.0, None, self._aside, self.has_failed)
        if only_failed and not self.has_failed:
            os.unlink(self.path)
            return RecordedTest(None, 0.0, None, None, False)
        has_memory = any(type(source).__name__ == "MemorySource" for source in recording._sources)
        peak = recording.memory().peak().bytes if has_memory else None
        return RecordedTest(self.path, self._seconds, peak, None, self.has_failed)

    def _fail(self, error: Exception) -> None:
        if self._recording is not None and self._recording.state == "recording":
            self._recording._failed(type(error), error, error.__traceback__)

    def _end(self) -> None:
        if self._recording is not None and self._recording.state == "recording":
            self._seconds = self._seconds or time.perf_counter() - self._began
            self._recording._end_source()


class _Stage:
    def __init__(self, recording: SourcedRecording | None, name: str) -> None:
        self._span = None if recording is None else recording.span(name)

    def __enter__(self) -> None:
        if self._span is not None:
            self._span.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self._span is not None:
            self._span.__exit__(*error)


def file_name(test: str) -> str:
    """A file for a test, by its name in pytest: tests.test_shop--TestCart.test_total.swv."""
    path, *names = test.split("::")
    folders = path.removesuffix(".py").split("/")
    readable = ".".join(folders) + "".join(("--" if place == 0 else ".") + name for place, name in enumerate(names))
    safe = re.sub(r"[^\w.-]+", "_", readable).strip("_")
    if safe != readable or len(safe) > LONGEST_NAME or any("." in folder for folder in folders):
        number = hashlib.sha256(test.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        safe = f"{safe[:LONGEST_NAME]}-{number}"
    return f"{safe}.swv"


def _make_folder(folder: str) -> None:
    """Recordings are nothing for a repository."""
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")
