"""The hook in torch's allocator, as the library in C++ has it."""

from __future__ import annotations

import ctypes
from typing import Any

from .. import _native
from .._native import StartError

#: Of the functions, as the library says it.
_VERSION = 2
_LENGTH = 1000


class CudaHook:
    """Told to the recorder: what torch's CUDA allocator does. One for the process: it can't be taken out again.

    None of its calls holds the GIL.
    """

    def __init__(self, path: str, torch_version: str | None = None) -> None:
        try:
            self._library = ctypes.CDLL(path)
            version = self._library.stackweave_cuda_version()
        except (OSError, AttributeError) as error:
            raise StartError(f"the CUDA hook can't be loaded: {error}") from None
        if version != _VERSION:
            raise StartError(f"{path} was built for another version of stackweave: remove it")
        # What torch's own objects look like differs: the wrong library would read them wrongly.
        built_for = self._torch_version()
        if torch_version is not None and built_for != torch_version:
            raise StartError(
                f"{path} was built for torch {built_for}, and this is torch {torch_version}: build it with this one"
            )

    def is_ready(self) -> bool:
        """Whether there are devices to record."""
        return bool(self._library.stackweave_cuda_is_ready())

    def attach(self) -> None:
        """To the allocator that is used now. Again, it changes nothing."""
        function = ctypes.cast(ctypes.CDLL(_native.__file__).stackweave_tell, ctypes.c_void_p)
        self._call("attach", function)

    def begin(self) -> None:
        """Records every event from here on, and what is there already."""
        self._call("begin")

    def tell_state(self, reason: int) -> None:
        """Records what the allocator holds at this moment."""
        self._call("state", ctypes.c_uint64(reason))

    def end(self, *, with_state: bool) -> None:
        self._call("end", ctypes.c_int(with_state))

    def counts(self) -> tuple[int, int, int]:
        """How often the program waited for us, in vain, and devices that began inexactly for that: since begin()."""
        numbers = (ctypes.c_uint64 * 3)()
        self._library.stackweave_cuda_counts(numbers)
        return numbers[0], numbers[1], numbers[2]

    def _torch_version(self) -> str:
        function = self._library.stackweave_cuda_torch
        function.restype = ctypes.c_char_p
        told: bytes = function()
        return told.decode(errors="replace")

    def _call(self, name: str, *arguments: Any) -> None:
        error = ctypes.create_string_buffer(_LENGTH)
        function = getattr(self._library, f"stackweave_cuda_{name}")
        if function(*arguments, error, ctypes.c_size_t(_LENGTH)) != 0:
            raise StartError(f"CUDA's memory can't be recorded: {error.value.decode(errors='replace')}")
