"""The plugin of pytest, which finds it by an entry point: recordings of tests, limits of memory, checks for leaks.

--stackweave=trace records the calls of each test to a file of its own, --stackweave=memory its memory, and
--stackweave=record both.

@pytest.mark.stackweave_limit("24 MB") fails a test that has more memory in use at any moment, and
@pytest.mark.stackweave_leaks("100 kB") a test that leaves more memory in use, each time that it runs.
--stackweave-peaks lists the tests that use most memory.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

#: The name of the peak among the properties of a test report.
PEAK = "stackweave_peak_bytes"
#: The kinds of recordings of a test.
KINDS = ("trace", "memory", "record")
#: The folder for recordings of tests.
FOLDER = ".stackweave"
#: A longer name is cut, and gets a number that distinguishes it.
LONGEST_NAME = 150
MARKS = {
    "stackweave_limit": "stackweave_limit(size, python_allocators=False): the test may have at most this much memory in"
    ' use at a time, "24 MB"',
    "stackweave_leaks": "stackweave_leaks(size, warmups=1, runs=3, python_allocators=True): the test is run several"
    ' times, and may leave at most this much memory in use each time, "100 kB"',
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stackweave", "calls and memory of tests, as stackweave records them")
    group.addoption("--stackweave-peaks", action="store_true", help="list the tests that use most memory")
    group.addoption(
        "--stackweave-peaks-top", type=int, metavar="NUMBER", default=10, help="how many tests are listed (10)"
    )
    group.addoption(
        "--stackweave-peaks-folder", metavar="FOLDER", help="keep the recordings of tests that are measured there"
    )
    _add_recording(group, parser)
    parser.addini("stackweave_peaks", "list the tests that use most memory", type="bool", default=False)


def _add_recording(group: Any, parser: pytest.Parser) -> None:
    group.addoption("--stackweave", choices=KINDS, help="record each test: its calls, its memory, or both (record)")
    group.addoption("--stackweave-folder", metavar="FOLDER", help=f"where recordings go ({FOLDER})")
    group.addoption("--stackweave-fixtures", action="store_true", help="record setup and teardown, too")
    group.addoption("--stackweave-only-failed", action="store_true", help="keep recordings of tests that fail only")
    parser.addini("stackweave", "record each test: trace, memory or record")
    parser.addini("stackweave_folder", "where recordings of tests go", default=FOLDER)
    parser.addini("stackweave_fixtures", "record setup and teardown, too", type="bool", default=False)
    parser.addini("stackweave_only_failed", "keep recordings of tests that fail only", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    for line in MARKS.values():
        config.addinivalue_line("markers", line)
    kind = config.getoption("stackweave") or config.getini("stackweave")
    if kind:
        _record_tests(config, kind)
    config.pluginmanager.register(_Peaks(config), "stackweave-peaks")


def pytest_unconfigure() -> None:
    checks = sys.modules.get(f"{__package__}._integrations.pytest.checks")
    if checks is not None:
        checks.release_hooks()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    limit, leaks = (item.get_closest_marker(name) for name in MARKS)
    lists_all = item.config.getoption("stackweave_peaks") or item.config.getini("stackweave_peaks")
    if not (limit or leaks or lists_all) or not hasattr(item, "obj"):
        yield
        return
    from ._integrations.pytest.checks import measured

    plain = item.obj
    item.obj = measured(item, plain, limit, leaks)
    try:
        yield
    finally:
        item.obj = plain


def _record_tests(config: pytest.Config, kind: str) -> None:
    if kind not in KINDS:
        raise pytest.UsageError(f"stackweave must be trace, memory or record, but is {kind!r}")
    lists_all = config.getoption("stackweave_peaks") or config.getini("stackweave_peaks")
    if lists_all and kind != "trace":
        raise pytest.UsageError(f"--stackweave={kind} and --stackweave-peaks both record memory: leave out one of them")
    from ._integrations.pytest.recordings import Recordings

    names = ("folder", "fixtures", "only_failed")
    options = {name: config.getoption(f"stackweave_{name}") or config.getini(f"stackweave_{name}") for name in names}
    config.pluginmanager.register(Recordings(config, kind, options), "stackweave-recordings")


class _Peaks:
    """Lists the tests that used most memory, in all processes that run tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._peaks: list[tuple[int, str]] = []
        self._most: int = config.getoption("stackweave_peaks_top")
        self._is_on = bool(config.getoption("stackweave_peaks") or config.getini("stackweave_peaks"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._peaks += [(int(str(value)), report.nodeid) for name, value in report.user_properties if name == PEAK]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not (self._is_on and self._peaks):
            return
        from ._printable import printable
        from ._sizes import size_text

        terminalreporter.section("memory of tests at their peak")
        for peak, name in sorted(self._peaks, reverse=True)[: self._most]:
            terminalreporter.write_line(f"{size_text(peak):>10}  {printable(name)}")


def file_name(test: str) -> str:
    """Returns a file name for a test, by its name in pytest: tests.test_shop--TestCart.test_total.swv."""
    path, *names = test.split("::")
    folders = path.removesuffix(".py").split("/")
    readable = ".".join(folders) + "".join(("--" if index == 0 else ".") + name for index, name in enumerate(names))
    safe = re.sub(r"[^\w.-]+", "_", readable).strip("_")
    if safe != readable or len(safe) > LONGEST_NAME or any("." in folder for folder in folders):
        number = hashlib.sha256(test.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        safe = f"{safe[:LONGEST_NAME]}-{number}"
    return f"{safe}.swv"


def recording_path(item: pytest.Item, folder: str) -> str:
    """Returns the path for a test in a folder of recordings."""
    return os.path.join(folder, file_name(item.nodeid))
