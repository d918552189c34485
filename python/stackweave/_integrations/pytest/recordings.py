"""`pytest --stackweave=trace|memory|record`: a recording for each test. Imported if the option is given."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from ... import _native
from ..._native import StackweaveError
from ..._printable import printable
from ..._sizes import count_text, duration_text, size_text
from ...pytest_plugin import file_name
from .recorded_test import MemoryOfTest, RecordedTest, RecordOfTest, TestRecorder, TraceOfTest, remove_files

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..._recorders.sources import SourcedRecorder

#: The number of tests that are listed.
LISTED = 5


class Recordings:
    """Records the tests of this process, and reports those of all processes."""

    def __init__(self, config: pytest.Config, kind: str, options: dict[str, Any]) -> None:
        self._kind = kind
        self._folder = os.path.join(config.rootpath, options["folder"])
        self._is_whole: bool = options["fixtures"]
        self._only_failed: bool = options["only_failed"]
        self._began = os.getcwd()
        self._running: dict[str, TestRecorder] = {}
        self._reported: list[tuple[str, RecordedTest]] = []
        self._hooks = None if kind == "trace" else _native.KeptMemoryHooks()

    def pytest_unconfigure(self) -> None:
        if self._hooks is not None:
            self._hooks.close()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        recorded = self._running[item.nodeid] = TestRecorder(self._recorder(item))
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
            report.stackweave_recorded = list(recorded.result(only_failed=self._only_failed))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = getattr(report, "stackweave_recorded", None)
        if test is not None:
            self._reported.append((report.nodeid, RecordedTest(*test)))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._reported:
            return
        terminalreporter.ensure_newline()
        terminalreporter.section("stackweave")
        for line in self._lines():
            terminalreporter.write_line(printable(line))

    def _lines(self) -> Generator[str, None, None]:
        found = [(name, test) for name, test in self._reported if test.file is not None]
        folder = self._shown(self._folder)
        yield f"{count_text(len(found), 'recording')} in {folder}{os.sep}{self._order_text(len(found))}"
        by_size = self._kind == "memory"
        found.sort(key=lambda each: (each[1].bytes or 0) if by_size else each[1].seconds, reverse=True)
        for name, test in found[:LISTED]:
            cost = size_text(test.bytes or 0) if by_size else _time_text(test.seconds)
            peak = f", {size_text(test.bytes)}" if self._kind == "record" and test.bytes is not None else ""
            yield f"{cost:>10}{peak}  {name}{'  (failed)' if test.failed else ''}"
        for reason in dict.fromkeys(test.aside for _, test in self._reported if test.aside):
            names = [name for name, test in self._reported if test.aside == reason]
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"not recorded, because {reason}: {names[0]}{more}"
        if found:
            yield f"Next: stackweave report {shlex.quote(self._shown(found[0][1].file or ''))}"

    def _order_text(self, number: int) -> str:
        if number == 0:
            return ""
        most = "the largest at their peak" if self._kind == "memory" else "the slowest"
        return f"; {most}:" if number > 1 else ":"

    def _shown(self, path: str) -> str:
        inside = os.path.relpath(path, self._began)
        return path if inside.startswith("..") else inside

    def _recorder(self, item: pytest.Item) -> SourcedRecorder | str:
        """Returns the recorder of a test, or why there is none."""
        has_marks = any(item.get_closest_marker(f"stackweave_{name}") for name in ("limit", "leaks"))
        if self._kind == "memory" and has_marks:
            return "its mark records its memory"
        path = os.path.join(self._folder, file_name(item.nodeid))
        try:
            _make_folder(self._folder)
            remove_files(path)
            if self._kind == "trace":
                recorder: SourcedRecorder = TraceOfTest(path, overwrite=True)
            elif self._kind == "memory":
                recorder = MemoryOfTest(path, overwrite=True)
            else:
                recorder = RecordOfTest(path, memory=not has_marks, overwrite=True)
        except (OSError, StackweaveError) as error:
            return str(error)
        recorder._leave_out_callers()
        return recorder


def _time_text(seconds: float) -> str:
    return duration_text(seconds) if seconds >= 0.01 else f"{seconds * 1000:.2f} ms"


def _make_folder(folder: str) -> None:
    """Makes the folder, and keeps git from listing it."""
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")
