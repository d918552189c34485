"""What is said about chosen calls when they begin: argument values, modules and optimizers of torch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._argument_values import arguments_of
from ._torch_calls import PATTERNS, TorchCalls

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType


def with_methods(patterns: list[str]) -> list[str]:
    """Before 3.11 code does not know the class that it is in: a method is looked for as a function of its module."""
    if sys.version_info >= (3, 11):
        return patterns
    more = []
    for pattern in patterns:
        *outer, name = pattern.split(".")
        if ":" not in pattern:
            more += [".".join((*outer[:length], name)) for length in range(1, len(outer))]
    return [*patterns, *more]


class DescribedCalls:
    """The native part calls it when a function begins that one of its patterns stands for. Never raises."""

    def __init__(self, arguments: list[str], native_stacks: list[str], *, torch: bool) -> None:
        stacks = [(pattern, True) for pattern in with_methods(native_stacks)]
        both = [(pattern, False) for pattern in with_methods(arguments)]
        names = [(pattern, False) for pattern in PATTERNS] if torch else []
        #: As the native part takes them: pattern, and whether the native stack is wanted.
        self.patterns = [*both, *names, *stacks]
        self._asks_arguments = (1 << len(both)) - 1
        self._asks_torch = (1 << len(names)) - 1 << len(both)
        self._torch = TorchCalls()

    def __call__(
        self, code: CodeType, values: Mapping[str, Any], matched: int
    ) -> tuple[str | None, dict[str, Any] | None] | None:
        label, details = None, None
        try:
            if matched & self._asks_torch:
                label, details = self._torch.describe(code, values) or (None, None)
            if matched & self._asks_arguments:
                details = {**(details or {}), **arguments_of(code, values)}
        except Exception:
            pass
        return None if label is None and not details else (label, details)

    def forked(self) -> None:
        self._torch.forked()
