"""Checks whether torch's CUDA memory can be recorded, and describes the devices."""

from __future__ import annotations

import glob
import importlib
import os
import re
from typing import Any

from ..._native import StartError

#: The folder in which the driver describes its devices.
DRIVER = "/proc/driver/nvidia/gpus"
#: The variable that makes torch allocate each block from the driver.
NO_CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"


def usable_torch() -> Any:
    """Returns the module torch, if its CUDA memory can be recorded. Raises StartError otherwise."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise StartError(f"recording CUDA's memory needs torch, which can't be imported: {error}") from None
    if not hasattr(torch, "version"):
        raise StartError(f"recording CUDA's memory needs torch, but the imported module torch is another one: {torch}")
    if getattr(torch.version, "hip", None):
        raise StartError(
            f"this torch ({torch.__version__}) is one for ROCm: only memory of CUDA devices can be recorded"
        )
    if not getattr(torch.version, "cuda", None):
        raise StartError(
            f"this torch ({torch.__version__}) was built without CUDA: install one that was built with it, "
            "or record the process's own memory with stackweave.memory"
        )
    # Unlike is_available(), this leaves CUDA usable in forked processes.
    if torch.cuda.device_count() == 0:
        raise StartError("torch finds no CUDA device here: nvidia-smi shows whether the driver does")
    backend = torch.cuda.memory.get_allocator_backend()
    if backend != "native":
        raise StartError(
            f'torch uses the allocator "{backend}", whose events are not visible: record with its own one, '
            "that is without change_current_allocator() and without backend: in PYTORCH_ALLOC_CONF"
        )
    if NO_CACHING in os.environ:
        raise StartError(f"{NO_CACHING} is set, and so torch's allocator has nothing to do: unset it")
    return torch


def device_entries(torch: Any) -> dict[str, str]:
    """Returns names and sizes of the devices. Before torch has initialised CUDA, little is known."""
    count = torch.cuda.device_count()
    if not torch.cuda.is_initialized():
        name = _name_of_all()
        return {} if name is None else {f"device.{device}.name": name for device in range(count)}
    found = {}
    for device in range(count):
        properties = torch.cuda.get_device_properties(device)
        found[f"device.{device}.name"] = str(properties.name)
        found[f"device.{device}.total"] = str(properties.total_memory)
    return found


def _name_of_all() -> str | None:
    """Returns the name from the driver if all devices have the same: only CUDA knows their order."""
    names = set()
    for path in glob.glob(os.path.join(glob.escape(DRIVER), "*", "information")):
        try:
            with open(path, errors="replace") as file:
                match = re.search(r"^Model:\s*(\S.*?)\s*$", file.read(), re.MULTILINE)
        except OSError:
            return None
        names.add(match[1] if match else None)
    return names.pop() if len(names) == 1 else None
