"""Limits of memory and checks for leaks in tests of pytest, which finds this by itself where the package is installed.

@pytest.mark.stackweave_limit("24 MB") fails a test that has more in use at any moment, and
@pytest.mark.stackweave_leaks("100 kB") one that gives back less than it takes, each time that it is run.
--stackweave-memory lists the tests that use most.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

#: What each test's peak is called among the properties of its report.
PEAK = "stackweave_peak_bytes"
MARKS = {
    "stackweave_limit": "stackweave_limit(size, python_allocators=False): the test may have at most so much memory in"
    ' use at a time, "24 MB"',
    "stackweave_leaks": "stackweave_leaks(size, warmups=1, runs=3, python_allocators=True): the test is run several"
    ' times, and may leave at most so much memory in use each time, "100 kB"',
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stackweave", "memory, as stackweave records it")
    group.addoption("--stackweave-memory", action="store_true", help="list the tests that use most memory")
    group.addoption(
        "--stackweave-memory-top", type=int, metavar="NUMBER", default=10, help="how many tests are listed (10)"
    )
    group.addoption(
        "--stackweave-memory-folder", metavar="FOLDER", help="keep the recordings of tests that are measured there"
    )
    parser.addini("stackweave_memory", "list the tests that use most memory", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    for line in MARKS.values():
        config.addinivalue_line("markers", line)
    config.pluginmanager.register(_Peaks(config), "stackweave-peaks")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    limit, leaks = (item.get_closest_marker(name) for name in MARKS)
    lists_all = item.config.getoption("stackweave_memory") or item.config.getini("stackweave_memory")
    if not (limit or leaks or lists_all) or not hasattr(item, "obj"):
        yield
        return
    from ._pytest_checks import measured

    plain = item.obj
    item.obj = measured(item, plain, limit, leaks)
    try:
        yield
    finally:
        item.obj = plain


class _Peaks:
    """Lists the tests that used most. Reports come here from all processes that run tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._peaks: list[tuple[int, str]] = []
        self._most: int = config.getoption("stackweave_memory_top")
        self._is_on = bool(config.getoption("stackweave_memory") or config.getini("stackweave_memory"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._peaks += [(int(str(value)), report.nodeid) for name, value in report.user_properties if name == PEAK]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not (self._is_on and self._peaks):
            return
        from ._sizes import size_text

        terminalreporter.section("memory of tests at their peak")
        for peak, name in sorted(self._peaks, reverse=True)[: self._most]:
            terminalreporter.write_line(f"{size_text(peak):>10}  {name}")


def recording_path(item: pytest.Item, folder: str) -> str:
    """A file for a test, in a folder of recordings."""
    return os.path.join(folder, re.sub(r"[^\w.-]+", "_", item.nodeid)[-200:] + ".swv")
