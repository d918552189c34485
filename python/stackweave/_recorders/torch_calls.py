"""Names for calls of torch: which module is called, which optimizer steps. Imports nothing of torch."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

from .argument_values import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType

#: Where torch enters a module, and where an optimizer steps. They are found whenever torch is imported.
PATTERNS = ("function:Module._wrapped_call_impl", "function:Optimizer.profile_hook_step.<locals>.wrapper")
if sys.version_info < (3, 11):
    # Code objects do not have the name of their class: other functions match, too, and are rejected later.
    PATTERNS = ("function:_wrapped_call_impl", "file:*/torch/optim/optimizer.py")
#: The most parameters that are described of a module, or of a group of an optimizer: an event has at most 65,000 bytes.
MOST_PARAMETERS = 64
MOST_GROUPS = 8

_Described = tuple[str, dict[str, Any] | None]


class Ordinals:
    """Numbers the instances of each class. An object at the address of one that is gone gets a new number."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next: dict[str, itertools.count[int]] = {}
        self.replace_lock()

    def replace_lock(self) -> None:
        """Resets the lock, also in a forked child, whose parent may have held it."""
        self._lock = threading.Lock()

    def of(self, instance: object, kind: str) -> tuple[int, bool]:
        """Returns the number of an object, from 0, and whether it is new."""
        seen = self._seen.get(id(instance))
        if seen is not None and seen[0]() is instance:
            return seen[1], False
        with self._lock:
            seen = self._seen.get(id(instance))
            if seen is not None and seen[0]() is instance:
                return seen[1], False
            ordinal = next(self._next.setdefault(kind, itertools.count()))
            self._seen[id(instance)] = (weakref.ref(instance, self._forget(id(instance))), ordinal)
            return ordinal, True

    def _forget(self, number: int) -> Callable[[weakref.ref[Any]], None]:
        def forget(gone: weakref.ref[Any]) -> None:
            seen = self._seen.get(number)
            if seen is not None and seen[0] is gone:
                del self._seen[number]

        return forget


class TorchCalls:
    """Describes calls of modules and steps of optimizers."""

    def __init__(self) -> None:
        self._modules = Ordinals()
        self._optimizers = Ordinals()

    def forked(self) -> None:
        self._modules.replace_lock()
        self._optimizers.replace_lock()

    def describe(self, code: CodeType, values: Mapping[str, Any]) -> _Described | None:
        """Returns the label and details of a call, or None if the function is not of torch."""
        if _is_module_call(code):
            return self._module(values["self"])
        if _is_optimizer_step(code):
            return self._step(values["args"][0])
        return None

    def _module(self, module: Any) -> _Described:
        kind = type(module)
        ordinal, is_new = self._modules.of(module, kind.__name__)
        details = None
        if is_new:
            own = module.__dict__.get("_parameters") or {}
            details = {"class": name_of(kind), "parameters": _parameters(list(own.items()))}
        return f"nn.Module: {kind.__name__}_{ordinal}", details

    def _step(self, optimizer: Any) -> _Described:
        kind = type(optimizer)
        ordinal, is_new = self._optimizers.of(optimizer, kind.__name__)
        details = None
        if is_new:
            groups = optimizer.__dict__.get("param_groups") or []
            details = {
                "class": name_of(kind),
                "optimizer": ordinal,
                "param_groups": [_group(group) for group in groups[:MOST_GROUPS]],
            }
            if len(groups) > MOST_GROUPS:
                details["groups"] = len(groups)
        return f"Optimizer.step#{kind.__name__}.step", details


def _is_module_call(code: CodeType) -> bool:
    torch = sys.modules.get("torch.nn.modules.module")
    return code is getattr(getattr(getattr(torch, "Module", None), "_wrapped_call_impl", None), "__code__", None)


def _is_optimizer_step(code: CodeType) -> bool:
    torch = sys.modules.get("torch.optim.optimizer")
    hook = getattr(getattr(torch, "Optimizer", None), "profile_hook_step", None)
    inner = getattr(getattr(hook, "__code__", None), "co_consts", ())
    return any(code is constant for constant in inner)


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    named = group.get("param_names")
    parameters = group.get("params") or []
    described: dict[str, Any] = {
        name: value
        for name, value in group.items()
        if type(value) in (bool, int, float, str, type(None)) or _is_plain_tuple(value)
    }
    names = named if type(named) is list and len(named) == len(parameters) else range(len(parameters))
    described["params"] = _parameters(list(zip(map(str, names), parameters, strict=True)))
    return described


def _is_plain_tuple(value: object) -> bool:
    return type(value) is tuple and all(type(item) in (bool, int, float, str) for item in value)


def _parameters(named: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    described = [_tensor(name, tensor) for name, tensor in named[:MOST_PARAMETERS] if tensor is not None]
    if len(named) > MOST_PARAMETERS:
        described.append({"name": f"... {len(named)} in all"})
    return described


def _tensor(name: str, tensor: Any) -> dict[str, Any]:
    """Returns what can be read without running code of the program."""
    kind = name_of(type(tensor))
    if kind not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        return {"name": name, "type": kind}
    described = {"name": name, "shape": list(tensor.shape), "dtype": str(tensor.dtype), "device": str(tensor.device)}
    try:
        described["strides"] = list(tensor.stride())
    except RuntimeError:  # sparse ones have none
        described["layout"] = str(tensor.layout)
    return described
