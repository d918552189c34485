"""CUDA's memory as it feeds a recording."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from .._native import StackweaveError, StartError
from .._sources import current_of
from ._cuda_build import built_library
from ._cuda_hook import CudaHook
from ._cuda_torch import device_entries, usable_torch
from ._say import say

if TYPE_CHECKING:
    from .._sources import SourcedRecording
    from ._cuda_memory import CudaMemory

#: Why the state of the allocator is told, if not because the recording ends.
OUT_OF_MEMORY, ASKED = 1, 2


class CudaSource:
    """Tells of every event of torch's CUDA allocator. There can be one at a time."""

    __slots__ = ("_counts", "_has_begun", "_is_attached", "_process", "_recording", "_said", "hook")

    one: ClassVar[str] = "one"
    outlasts_failures: ClassVar[bool] = True

    def __init__(self) -> None:
        #: From when it is made ready on.
        self.hook: CudaHook | None = None
        #: What has gone wrong, although the program must not see it.
        self._said: set[str] = set()
        self._recording: CudaMemory | None = None
        self._is_attached = False
        self._has_begun = False
        self._counts = (0, 0, 0)
        self._process = 0

    def make_ready(self) -> dict[str, str]:
        """All that can fail, or take long, before there is a recording. Gives what is known of the devices."""
        torch = usable_torch()
        self.hook = _loaded_hook(built_library(torch), str(torch.__version__))
        return device_entries(torch)

    def prepare(self, recording: SourcedRecording) -> None:
        self._recording = recording  # type: ignore[assignment]
        self._process = os.getpid()
        if self.hook is None:
            self.make_ready()
        if self.hook is not None and self.hook.is_ready():
            self._attach()

    def begin(self) -> None:
        if self.hook is not None and self.hook.is_ready():
            # Another thread may have initialised CUDA since.
            if not self._is_attached:
                self._attach()
            self.hook.begin()
            self._has_begun = True
        else:
            _begin_with_cuda()

    def begin_late(self) -> None:
        """CUDA is there now. It has begun without us, if it was initialised twice, which changes nothing."""
        recording, hook = self._recording, self.hook
        if self._has_begun or recording is None or hook is None or self._process != os.getpid():
            return
        try:
            self._attach()
            hook.begin()
            self._has_begun = True
            # It may have been stopped meanwhile, by another thread.
            if self._recording is None:
                self.leave()
        except Exception as error:
            self._say("begin", str(error))

    def tell_state(self, reason: int) -> None:
        """What is recorded is written all the same, if the allocator does not answer."""
        if self._has_begun and self.hook is not None and self._process == os.getpid():
            try:
                self.hook.tell_state(reason)
            except StackweaveError as error:
                self._say("account", f"what the allocator holds is not in the recording: {error}")

    def out_of_memory(self, device: int, asked: int, total: int, free: int) -> None:
        recording = self._recording
        if self._has_begun and recording is not None and self._process == os.getpid():
            try:
                recording._out_of_memory(device, asked, total, free)
            except Exception as error:
                self._say("memory", f"what was known when memory ran out could not be written: {error}")

    def counts(self) -> tuple[int, int, int]:
        """As the hook counts, for this recording."""
        if self._has_begun and self.hook is not None:
            return self.hook.counts()
        return self._counts

    def end(self) -> None:
        hook, has_begun = self.hook, self._has_begun
        self._has_begun = False
        self._recording = None
        if has_begun and hook is not None and self._process == os.getpid():
            try:
                hook.end(with_state=True)
            except StackweaveError as error:
                self._say("account", f"what the allocator holds at the end is not in the recording: {error}")
            self._counts = hook.counts()
            if self._counts[2]:
                self._say(
                    "inexact",
                    "the beginning of the recording is not exact: other threads could not wait for it, and what they "
                    "took or freed at that moment may be missing, or there twice",
                )

    def leave(self) -> None:
        hook, has_begun = self.hook, self._has_begun
        self._has_begun = False
        self._recording = None
        if has_begun and hook is not None and self._process == os.getpid():
            hook.end(with_state=False)

    def pause(self) -> None:
        """The recorder leaves out what it is told."""

    def resume(self) -> None: ...

    def forked(self) -> None:
        """A child never records CUDA's memory."""
        self._has_begun = False
        self.hook = None

    def _say(self, what: str, problem: str) -> None:
        """Once for each: what goes wrong may do so often."""
        if what not in self._said:
            self._said.add(what)
            say(problem)

    def _attach(self) -> None:
        if self.hook is not None:
            self.hook.attach()
            _observe_out_of_memory(sys.modules["torch"])
            self._is_attached = True


class _Process:
    """What is done once in a process, and can't be undone."""

    hooks: ClassVar[dict[str, CudaHook]] = {}
    #: Whether torch will tell when it has initialised CUDA, or has told.
    awaits_cuda: ClassVar[bool] = False
    observes_out_of_memory: ClassVar[bool] = False


def _loaded_hook(path: str, torch_version: str) -> CudaHook:
    hook = _Process.hooks.get(path)
    if hook is None:
        hook = _Process.hooks[path] = CudaHook(path, torch_version)
    return hook


def _current() -> CudaSource | None:
    recording = current_of(CudaSource)
    return None if recording is None else getattr(recording, "_cuda_source", None)


def _begin_with_cuda() -> None:
    """Torch keeps what is to be done when it initialises CUDA."""
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
        raise StartError(f"torch can't tell when memory runs out: {error}") from None
    _Process.observes_out_of_memory = True


def _out_of_memory(device: int, asked: int, total: int, free: int) -> None:
    """Called by torch, without a lock of its own, before it raises. What we do must not be seen by the program."""
    with contextlib.suppress(Exception):
        source = _current()
        if source is not None:
            source.out_of_memory(device, asked, total, free)
