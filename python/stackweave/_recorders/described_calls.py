"""Describes chosen calls when they begin: argument values, modules and optimizers of torch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .argument_values import arguments_of
from .torch_calls import PATTERNS, TorchCalls

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType


def with_methods(patterns: list[str]) -> list[str]:
    """Adds patterns without classes before 3.11, where code objects do not have the name of their class."""
    if sys.version_info >= (3, 11):
        return patterns
    more = []
    for pattern in patterns:
        *outer, name = pattern.split(".")
        if ":" not in pattern:
            more += [".".join((*outer[:length], name)) for length in range(1, len(outer))]
    return [*patterns, *more]


class DescribedCalls:
    """The native module calls it when a function begins that matches one of its patterns. Never raises."""

    def __init__(self, arguments: list[str], native_stacks: list[str], *, torch: bool) -> None:
        stacks = [(pattern, True) for pattern in with_methods(native_stacks)]
        both = [(pattern, False) for pattern in with_methods(arguments)]
        names = [(pattern, False) for pattern in PATTERNS] if torch else []
        #: In the form of the native module: a pattern, and whether the native stack is recorded.
        self.patterns = [*both, *names, *stacks]
        self._arguments_mask = (1 << len(both)) - 1
        self._torch_mask = (1 << len(names)) - 1 << len(both)
        self._torch = TorchCalls()

    def __call__(
        self, code: CodeType, values: Mapping[str, Any], matched: int
    ) -> tuple[str | None, dict[str, Any] | None] | None:
        label, details = None, None
        try:
            if matched & self._torch_mask:
                label, details = self._torch.describe(code, values) or (None, None)
            if matched & self._arguments_mask:
                details = {**(details or {}), **arguments_of(code, values)}
        except Exception:
            pass
        return None if label is None and not details else (label, details)

    def forked(self) -> None:
        self._torch.forked()
