"""Feeds a recorder with the events of torch's CUDA allocator."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from ..._messages import print_message
from ..._native import StackweaveError, StartError
from ..._recorders.sources import current_of
from .build import built_library
from .hook import CudaHook
from .torch_state import device_entries, usable_torch

if TYPE_CHECKING:
    from ..._recorders.sources import SourcedRecorder
    from .memory import CudaMemoryRecorder

#: The reasons why the state of the allocator is recorded, if not at the end of the recording.
OUT_OF_MEMORY, DUMP = 1, 2


class CudaSource:
    """Records every event of torch's CUDA allocator. A process has at most one."""

    __slots__ = ("_counts", "_has_begun", "_is_attached", "_process", "_recorder", "_reported", "hook")

    one: ClassVar[str] = "one"
    outlasts_failures: ClassVar[bool] = True

    def __init__(self) -> None:
        #: Set by make_ready().
        self.hook: CudaHook | None = None
        #: The kinds of problems that were reported.
        self._reported: set[str] = set()
        self._recorder: CudaMemoryRecorder | None = None
        self._is_attached = False
        self._has_begun = False
        self._counts = (0, 0, 0)
        self._process = 0

    def make_ready(self) -> dict[str, str]:
        """Does all that can fail or take long, before the recording exists. Returns what is known about the devices."""
        torch = usable_torch()
        self.hook = _loaded_hook(built_library(torch), str(torch.__version__))
        return device_entries(torch)

    def prepare(self, recorder: SourcedRecorder) -> None:
        self._recorder = recorder  # type: ignore[assignment]
        self._process = os.getpid()
        if self.hook is None:
            self.make_ready()
        if self.hook is not None and self.hook.is_ready():
            self._attach()

    def begin(self) -> None:
        if self.hook is not None and self.hook.is_ready():
            # Another thread may have initialised CUDA since prepare().
            if not self._is_attached:
                self._attach()
            self.hook.begin()
            self._has_begun = True
        else:
            _begin_with_cuda()

    def begin_late(self) -> None:
        """Begins when CUDA is initialised. A second initialisation changes nothing."""
        recorder, hook = self._recorder, self.hook
        if self._has_begun or recorder is None or hook is None or self._process != os.getpid():
            return
        try:
            self._attach()
            hook.begin()
            self._has_begun = True
            # Another thread may have stopped the recorder since.
            if self._recorder is None:
                self.leave()
        except Exception as error:
            self._report("begin", str(error))

    def record_state(self, reason: int) -> None:
        """Records the state of the allocator. A failure is reported, and the recording continues."""
        if self._has_begun and self.hook is not None and self._process == os.getpid():
            try:
                self.hook.record_state(reason)
            except StackweaveError as error:
                self._report("state", f"the state of the allocator is not in the recording: {error}")

    def out_of_memory(self, device: int, requested: int, total: int, free: int) -> None:
        recorder = self._recorder
        if self._has_begun and recorder is not None and self._process == os.getpid():
            try:
                recorder._out_of_memory(device, requested, total, free)
            except Exception as error:
                self._report("memory", f"the snapshot at the end of memory could not be written: {error}")

    def counts(self) -> tuple[int, int, int]:
        """Returns the counts of the hook for this recording."""
        if self._has_begun and self.hook is not None:
            return self.hook.counts()
        return self._counts

    def end(self) -> None:
        hook, has_begun = self.hook, self._has_begun
        self._has_begun = False
        self._recorder = None
        if has_begun and hook is not None and self._process == os.getpid():
            try:
                hook.end(with_state=True)
            except StackweaveError as error:
                self._report("state", f"the state of the allocator at the end is not in the recording: {error}")
            self._counts = hook.counts()
            if self._counts[2]:
                self._report(
                    "inexact",
                    "the beginning of the recording is not exact: other threads could not wait for it, and what they "
                    "allocated or freed at that moment may be missing, or recorded twice",
                )

    def leave(self) -> None:
        hook, has_begun = self.hook, self._has_begun
        self._has_begun = False
        self._recorder = None
        if has_begun and hook is not None and self._process == os.getpid():
            hook.end(with_state=False)

    def pause(self) -> None:
        """Does nothing: a paused recorder ignores events."""

    def resume(self) -> None: ...

    def forked(self) -> None:
        """Drops the hook: a child never records CUDA's memory."""
        self._has_begun = False
        self.hook = None

    def _report(self, kind: str, problem: str) -> None:
        """Prints the first problem of each kind."""
        if kind not in self._reported:
            self._reported.add(kind)
            print_message(problem)

    def _attach(self) -> None:
        if self.hook is not None:
            self.hook.attach()
            _observe_out_of_memory(sys.modules["torch"])
            self._is_attached = True


class _Process:
    """State of the process that can't be undone."""

    hooks: ClassVar[dict[str, CudaHook]] = {}
    #: Whether torch calls us when it has initialised CUDA, or has done so.
    awaits_cuda: ClassVar[bool] = False
    observes_out_of_memory: ClassVar[bool] = False


def _loaded_hook(path: str, torch_version: str) -> CudaHook:
    hook = _Process.hooks.get(path)
    if hook is None:
        hook = _Process.hooks[path] = CudaHook(path, torch_version)
    return hook


def _current() -> CudaSource | None:
    recorder = current_of(CudaSource)
    return None if recorder is None else getattr(recorder, "_cuda_source", None)


def _begin_with_cuda() -> None:
    """Registers a function that torch calls when it initialises CUDA."""
    if not _Process.awaits_cuda:
        sys.modules["torch"].cuda._lazy_call(_cuda_begins)
        _Process.awaits_cuda = True


def _cuda_begins() -> None:
    source = _current()
    if source is not None:
        source.begin_late()


def _observe_out_of_memory(torch: Any) -> None:
    observe = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if observe is None or _Process.observes_out_of_memory:
        return
    try:
        observe(_out_of_memory)
    except RuntimeError as error:
        raise StartError(f"torch can't report that memory ran out: {error}") from None
    _Process.observes_out_of_memory = True


def _out_of_memory(device: int, requested: int, total: int, free: int) -> None:
    """Dumps a ring. Torch calls it without a lock before it raises. The program must not notice failures here."""
    with contextlib.suppress(Exception):
        source = _current()
        if source is not None:
            source.out_of_memory(device, requested, total, free)
