"""The boundary between a larger program and the code that is recorded in it: a cell of a notebook, a test.

Readers find this file by its name (stackweave-profile, `frame.rs`): stacks begin inside of its functions, and the
frames outside, which run cells or tests, are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import CodeType


def run_code(code: CodeType, namespace: dict[str, Any]) -> Any:
    """Returns the value of an expression, None for statements, and an awaitable for code with an await."""
    return eval(code, namespace)


def run_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


async def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
