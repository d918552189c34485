"""What has to be there for CUDA's memory to be recorded, and what torch says of the devices."""

from __future__ import annotations

import glob
import importlib
import os
import re
from typing import Any

from .._native import StartError

#: Where the driver tells of its devices.
DRIVER = "/proc/driver/nvidia/gpus"
#: Has torch ask the driver for each block.
NO_CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"


def usable_torch() -> Any:
    """The module, if it has devices of CUDA, and memory that can be recorded."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise StartError(f"recording CUDA's memory needs torch, which can't be imported: {error}") from None
    if not hasattr(torch, "version"):
        raise StartError(f"recording CUDA's memory needs torch, and what is imported by that name is none: {torch}")
    if getattr(torch.version, "hip", None):
        raise StartError(
            f"this torch ({torch.__version__}) is one for ROCm: only memory of CUDA devices can be recorded"
        )
    if not getattr(torch.version, "cuda", None):
        raise StartError(
            f"this torch ({torch.__version__}) was built without CUDA: install one that was built with it, "
            "or record the process's own memory with stackweave.memory"
        )
    # Unlike is_available(), this does not have forked processes lose CUDA.
    if torch.cuda.device_count() == 0:
        raise StartError("torch finds no CUDA device here: nvidia-smi shows whether the driver does")
    backend = torch.cuda.memory.get_allocator_backend()
    if backend != "native":
        raise StartError(
            f'torch uses the allocator "{backend}", which tells nobody what it does: record with its own one, '
            "that is without change_current_allocator() and without backend: in PYTORCH_ALLOC_CONF"
        )
    if NO_CACHING in os.environ:
        raise StartError(f"{NO_CACHING} is set, and so torch's allocator has nothing to do: unset it")
    return torch


def device_entries(torch: Any) -> dict[str, str]:
    """Names and sizes of the devices. Little as long as torch has not looked at them: we do not have it do so."""
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
    """As the driver says it, if all devices are the same: their order is CUDA's to know."""
    names = set()
    for path in glob.glob(os.path.join(glob.escape(DRIVER), "*", "information")):
        try:
            with open(path, errors="replace") as file:
                said = re.search(r"^Model:\s*(\S.*?)\s*$", file.read(), re.MULTILINE)
        except OSError:
            return None
        names.add(said[1] if said else None)
    return names.pop() if len(names) == 1 else None
