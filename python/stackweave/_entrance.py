"""Runs what is recorded inside of a larger program: a cell of a notebook, a test.

Stacks of a recording begin inside of the functions of this file, by its name: what lies outside, which is who runs
cells or tests, is of no interest (`Frame::is_entrance` in stackweave-profile).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import CodeType


def run_code(code: CodeType, namespace: dict[str, Any]) -> Any:
    """The value of an expression; None of statements; of code that awaits something, what is to be awaited."""
    return eval(code, namespace)


def run_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


async def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
