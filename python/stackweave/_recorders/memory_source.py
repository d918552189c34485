"""Feeds a recorder with the allocations of the program."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _native
from .._native import StateError
from .._options.table import OF_MEMORY
from .thread_names import ThreadNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .sources import SourcedRecorder

SAMPLE_EVERY = 512 << 10
#: Figures that are gone when the hooks are removed.
_WHILE_ON = ("modules", "slots", "foreign_slots")


class MemorySource:
    """Records every allocation. A process has at most one."""

    __slots__ = ("_follows_forks", "_names", "began", "counted", "hooks", "native_options", "options")

    one: ClassVar[str] = "one"
    outlasts_failures: ClassVar[bool] = True

    def __init__(self, given: Mapping[str, Any], *, own_memory: bool = True) -> None:
        options = {option.name: option.default for option in OF_MEMORY} | dict(given)
        _check_together(options)
        #: The checked options, for programs that are started from here too.
        self.options = {option.name: options[option.name] for option in OF_MEMORY}
        #: In the form of the native module.
        self.native_options = {**self.options, "own_memory": own_memory}
        if options["mode"] == "sampled" and options["sample_every"] is None:
            self.native_options["sample_every"] = SAMPLE_EVERY
        #: From start to stop.
        self.hooks: _native.AllocationHooks | None = None
        #: When it was started, in seconds of time.monotonic().
        self.began = 0.0
        #: The figures at the end, once it is stopped.
        self.counted: dict[str, Any] | None = None
        self._names: ThreadNames | None = None
        self._follows_forks = True

    def stats(self) -> dict[str, Any]:
        """Returns how allocations are recorded, and what was left out: numbers by their names."""
        if self.hooks is not None:
            return self._stats_of(self.hooks)
        if self.counted is None:
            raise StateError("nothing was recorded yet: call start(), or use it in a with statement")
        return dict(self.counted)

    @property
    def is_estimated(self) -> bool:
        """Whether figures are estimates, because allocations are sampled."""
        return bool(self.options["mode"] == "sampled")

    def _stats_of(self, hooks: _native.AllocationHooks) -> dict[str, Any]:
        stats = hooks.stats()
        stats["peak_time"] = max(time.monotonic() - self.began - stats.pop("peak_seconds_ago"), 0.0)
        return stats

    def prepare(self, recorder: SourcedRecorder) -> None:
        self._follows_forks = recorder._native_options.get("follow_forks", True)
        self.hooks = _native.AllocationHooks(recorder, self.native_options)
        self._names = ThreadNames(recorder._name_thread)
        self._names.start()
        self.began = time.monotonic()

    def begin(self) -> None:
        if self.hooks is None:
            return
        foreign = self.hooks.start()
        if foreign is not None:
            # A program that turns warnings into errors is recorded all the same.
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(foreign, RuntimeWarning, stacklevel=5)

    def end(self) -> None:
        hooks = self.hooks
        if hooks is None:
            return
        self.hooks = None
        try:
            before = hooks.stats()
            hooks.stop()
            self.counted = self._stats_of(hooks)
            for name in _WHILE_ON:
                self.counted[name] = before[name]
        finally:
            self.leave()

    def leave(self) -> None:
        self.hooks = None
        names, self._names = self._names, None
        if names is not None:
            names.stop()

    def pause(self) -> None:
        if self.hooks is not None:
            self.hooks.pause()

    def resume(self) -> None:
        if self.hooks is not None:
            self.hooks.resume()

    def forked(self) -> None:
        if self.hooks is not None and self._follows_forks:
            self.hooks.forked()


def _check_together(options: Mapping[str, Any]) -> None:
    if options.get("ring") is not None and options["mode"] == "aggregate":
        raise ValueError('ring keeps the last events, and mode="aggregate" writes none: leave one of them out')
    if options["sample_every"] is not None and options["mode"] != "sampled":
        raise ValueError('sample_every needs mode="sampled"')
