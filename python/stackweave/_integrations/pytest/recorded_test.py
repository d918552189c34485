"""The recording of one test of pytest. Its failures never fail the test."""

from __future__ import annotations

import functools
import inspect
import os
import re
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _boundary, _native
from ..._native import StackweaveError
from ..._recorders.combined import CombinedRecorder
from ..._recorders.memory import MemoryRecorder
from ..._recorders.trace import TraceRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._recorders.sources import SourcedRecorder


class RecordedTest(NamedTuple):
    """The recording of a test as its report has it, which may come from another process."""

    #: None if there is none.
    file: str | None
    seconds: float
    #: The peak of memory, where that is recorded.
    bytes: int | None
    #: The reason why there is none.
    aside: str | None
    failed: bool


def remove_files(path: str) -> None:
    """Removes the recordings of a test and of the processes that it has started, and no other file."""
    _native.remove_recordings_of_run(path)


class _MakesWay:
    """Ends the recording, and removes its file, as soon as the test starts a recorder itself."""

    _has_made_way = False

    def _make_way(self) -> None:
        self._has_made_way = True
        self._abandon()  # type: ignore[attr-defined]


class TraceOfTest(_MakesWay, TraceRecorder):
    pass


class MemoryOfTest(_MakesWay, MemoryRecorder):
    pass


class RecordOfTest(_MakesWay, CombinedRecorder):
    pass


class TestRecorder:
    """Records one test."""

    __test__ = False

    def __init__(self, recorder: SourcedRecorder | str) -> None:
        self._recorder = None if isinstance(recorder, str) else recorder
        self._aside = recorder if isinstance(recorder, str) else None
        self.has_failed = False
        self._began = 0.0
        self._seconds = 0.0

    @property
    def path(self) -> str:
        return self._recorder.path if self._recorder is not None else ""

    def start(self) -> None:
        if self._recorder is None or self._recorder.state != "new":
            return
        try:
            self._recorder.start()
            self._began = time.perf_counter()
        except (StackweaveError, OSError) as error:
            self._aside = re.sub(r" is on, and there can be .*", " is on", str(error))
            self._recorder = None

    def stop(self) -> None:
        if self._recorder is None or self._recorder.state == "new":
            return
        self._end()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning is not about the test
            self._recorder.stop()

    def stage(self, name: str) -> Any:
        """Returns a span of that name while it records, and else a context manager that does nothing."""
        is_on = self._recorder is not None and self._recorder.state == "recording"
        return _Stage(self._recorder if is_on else None, name)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function of a test, recorded the first time that it runs."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def record_coroutine(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                self.start()
                try:
                    return await _boundary.run_awaitable(function(*args, **kwargs))
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
                return _boundary.run_call(function, *args, **kwargs)
            except Exception as error:
                self._fail(error)
                raise
            finally:
                self._end()

        return record_function

    def is_there(self) -> bool:
        return self._recorder is not None and self._recorder.state != "new" and os.path.exists(self.path)

    def result(self, *, only_failed: bool) -> RecordedTest:
        recorder = self._recorder
        if recorder is not None and getattr(recorder, "_has_made_way", False):
            return RecordedTest(None, 0.0, None, "it records itself", self.has_failed)
        if recorder is None or not self.is_there():
            return RecordedTest(None, 0.0, None, self._aside, self.has_failed)
        if only_failed and not self.has_failed:
            remove_files(self.path)
            return RecordedTest(None, 0.0, None, None, False)
        has_memory = any(type(source).__name__ == "MemorySource" for source in recorder._sources)
        try:
            peak = recorder.recording.peak().bytes if has_memory else None
        except (StackweaveError, OSError) as error:
            return RecordedTest(None, 0.0, None, f"its recording can't be read: {error}", self.has_failed)
        return RecordedTest(self.path, self._seconds, peak, None, self.has_failed)

    def _fail(self, error: Exception) -> None:
        self._end()
        if self._recorder is not None and self._recorder.state == "recording":
            self._recorder._failed(type(error), error, error.__traceback__)

    def _end(self) -> None:
        if self._recorder is not None and self._recorder.state == "recording":
            self._seconds = self._seconds or time.perf_counter() - self._began
            self._recorder._end_source()


class _Stage:
    def __init__(self, recorder: SourcedRecorder | None, name: str) -> None:
        self._span = None if recorder is None else recorder.span(name)

    def __enter__(self) -> None:
        if self._span is not None:
            self._span.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self._span is not None:
            self._span.__exit__(*error)
