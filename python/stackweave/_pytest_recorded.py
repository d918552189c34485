"""The recording of one test of pytest. Whatever becomes of it, the test goes on."""

from __future__ import annotations

import functools
import inspect
import os
import re
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _entrance, _native
from ._memory import Memory
from ._native import StackweaveError
from ._record import Record
from ._trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._sources import SourcedRecording


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


def remove_files(path: str) -> None:
    """That of a test, and those of the processes that it has started. What is no recording of that run stays."""
    _native.remove_recordings_of_run(path)


class _MakesWay:
    """A recording of ours ends, and leaves nothing, as soon as a test records itself."""

    _has_made_way = False

    def _make_way(self) -> None:
        self._has_made_way = True
        self._abandon()  # type: ignore[attr-defined]


class TestTrace(_MakesWay, Trace):
    pass


class TestMemory(_MakesWay, Memory):
    pass


class TestRecord(_MakesWay, Record):
    pass


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
            self._recording.start()
            self._began = time.perf_counter()
        except (StackweaveError, OSError) as error:
            self._aside = re.sub(r" is on, and there can be .*", " is on", str(error))
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
        """The function of a test, which is recorded the first time that it runs."""
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
            remove_files(self.path)
            return RecordedTest(None, 0.0, None, None, False)
        has_memory = any(type(source).__name__ == "MemorySource" for source in recording._sources)
        try:
            peak = recording.memory().peak().bytes if has_memory else None
        except (StackweaveError, OSError) as error:
            return RecordedTest(None, 0.0, None, f"its recording can't be read: {error}", self.has_failed)
        return RecordedTest(self.path, self._seconds, peak, None, self.has_failed)

    def _fail(self, error: Exception) -> None:
        self._end()
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
