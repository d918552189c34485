"""The C++ library with the hook in torch's allocator."""

from __future__ import annotations

import ctypes
from typing import Any

from ... import _native
from ..._native import StartError

#: The version of the functions, which the library reports.
_VERSION = 3
_LENGTH = 1000


class CudaHook:
    """Records what torch's CUDA allocator does. A process has one: it can't be removed again.

    Its calls do not hold the GIL.
    """

    def __init__(self, path: str, torch_version: str | None = None) -> None:
        try:
            self._library = ctypes.CDLL(path)
            version = self._library.stackweave_cuda_version()
        except (OSError, AttributeError) as error:
            raise StartError(f"the CUDA hook can't be loaded: {error}") from None
        if version != _VERSION:
            raise StartError(f"{path} was built for another version of stackweave: remove it")
        # The layout of torch's objects differs between versions: the wrong library would misread them.
        built_for = self._torch_version()
        if torch_version is not None and built_for != torch_version:
            raise StartError(
                f"{path} was built for torch {built_for}, and this is torch {torch_version}: build it with this one"
            )

    def is_ready(self) -> bool:
        """Returns whether there are devices to record."""
        return bool(self._library.stackweave_cuda_is_ready())

    def attach(self) -> None:
        """Attaches the hook to the current allocator. A second call changes nothing."""
        function = ctypes.cast(ctypes.CDLL(_native.__file__).stackweave_record_host_event, ctypes.c_void_p)
        self._call("attach", function)

    def begin(self) -> None:
        """Records the existing blocks, and every event from here on."""
        self._call("begin")

    def record_state(self, reason: int) -> None:
        """Records the state of the allocator at this moment."""
        self._call("record_state", ctypes.c_uint64(reason))

    def end(self, *, with_state: bool) -> None:
        self._call("end", ctypes.c_int(with_state))

    def counts(self) -> tuple[int, int, int]:
        """Returns the waits of the program for us, those in vain, and devices that began inexactly, since begin()."""
        numbers = (ctypes.c_uint64 * 3)()
        self._library.stackweave_cuda_counts(numbers)
        return numbers[0], numbers[1], numbers[2]

    def _torch_version(self) -> str:
        function = self._library.stackweave_cuda_torch_version
        function.restype = ctypes.c_char_p
        version: bytes = function()
        return version.decode(errors="replace")

    def _call(self, name: str, *arguments: Any) -> None:
        error = ctypes.create_string_buffer(_LENGTH)
        function = getattr(self._library, f"stackweave_cuda_{name}")
        if function(*arguments, error, ctypes.c_size_t(_LENGTH)) != 0:
            raise StartError(f"CUDA's memory can't be recorded: {error.value.decode(errors='replace')}")
