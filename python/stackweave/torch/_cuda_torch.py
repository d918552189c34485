"""What has to be there for CUDA's memory to be recorded, and what torch says of the devices."""

from __future__ import annotations

import importlib
from typing import Any

from .._native import StackweaveError


def usable_torch() -> Any:
    """The module, if it has devices of CUDA, and memory that can be recorded."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise StackweaveError(f"recording CUDA's memory needs torch, which can't be imported: {error}") from None
    if getattr(torch.version, "hip", None):
        raise StackweaveError(
            f"this torch ({torch.__version__}) is one for ROCm: only memory of CUDA devices can be recorded"
        )
    if not getattr(torch.version, "cuda", None):
        raise StackweaveError(
            f"this torch ({torch.__version__}) was built without CUDA: install one that was built with it, "
            "or record the process's own memory with stackweave.memory"
        )
    # Unlike is_available(), this does not have forked processes lose CUDA.
    if torch.cuda.device_count() == 0:
        raise StackweaveError("torch finds no CUDA device here: nvidia-smi shows whether the driver does")
    backend = torch.cuda.memory.get_allocator_backend()
    if backend != "native":
        raise StackweaveError(
            f'torch uses the allocator "{backend}", which tells nobody what it does: record with its own one, '
            "that is without change_current_allocator() and without backend: in PYTORCH_ALLOC_CONF"
        )
    return torch


def device_entries(torch: Any) -> dict[str, str]:
    """Names and sizes of the devices. Nothing as long as torch has not looked at them: we do not have it do so."""
    if not torch.cuda.is_initialized():
        return {}
    found = {}
    for device in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(device)
        found[f"device.{device}.name"] = str(properties.name)
        found[f"device.{device}.total"] = str(properties.total_memory)
    return found
