"""Functions that the native module calls while it records. Imported with the first recorder."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractContextManager

    _Around = AbstractContextManager[Any, None]

CO_GENERATOR = 0x20
CO_COROUTINE = 0x80
CO_ASYNC_GENERATOR = 0x200


def details(values: dict[str, object]) -> bytes:
    """Returns the values as a JSON object. Values that are not JSON become strings, and nothing is raised."""
    try:
        text = _json(values)
    except Exception:
        text = "{" + ",".join(f"{json.dumps(name)}:{_value(value)}" for name, value in values.items()) + "}"
    return text.encode("utf-8", "replace")


def _json(value: object) -> str:
    return json.dumps(value, default=text_of, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _value(value: object) -> str:
    try:
        return _json(value)
    except Exception:  # NaN, a key that is no string, a container that contains itself
        return json.dumps(text_of(value), ensure_ascii=False)


def text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def decorate(span: _Around, name: str = "span") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that enters a span, or another context manager, around each step of a function."""

    def decorator(function: Callable[..., Any], /) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(f"a {name} decorates functions; {type(function).__name__} is not a function")
        flags = _flags(function)
        for kind, around in ((CO_COROUTINE, _coroutine), (CO_ASYNC_GENERATOR, _async_generator)):
            if flags & kind:
                return functools.wraps(function)(around(span, function))
        if flags & CO_GENERATOR:
            return functools.wraps(function)(_generator(span, function))
        return functools.wraps(function)(_plain(span, function))

    return decorator


def _flags(function: object) -> int:
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return int(getattr(getattr(function, "__code__", None), "co_flags", 0))


def _plain(span: _Around, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with span:
            return function(*args, **kwargs)

    return call


def _generator(span: _Around, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _Steps(span, function(*args, **kwargs)))

    return call


def _coroutine(span: _Around, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await _Steps(span, function(*args, **kwargs))

    return call


def _async_generator(span: _Around, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        step = generator.asend(None)
        while True:
            try:
                value = await _Steps(span, step.__await__())
            except StopAsyncIteration:
                return
            try:
                step = generator.asend((yield value))
            except GeneratorExit:
                await _Steps(span, generator.aclose().__await__())
                raise
            except BaseException as error:
                step = generator.athrow(error)

    return call


class _Steps:
    """A generator or coroutine, with a span around each of its steps."""

    __slots__ = ("_inner", "_span")

    def __init__(self, span: _Around, inner: Any) -> None:
        self._span = span
        self._inner = inner

    def __iter__(self) -> _Steps:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        with self._span:
            return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        with self._span:
            return self._inner.throw(*error)

    def close(self) -> None:
        with self._span:
            self._inner.close()
