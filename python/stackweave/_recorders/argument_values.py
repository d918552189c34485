"""Short texts for the values of arguments. No code of the program runs: other values are named by their type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

LONGEST = 100
LONGEST_OF_MANY = 300
MOST_ITEMS = 6
DEEPEST = 2
#: Converting a number with more bits to decimal digits takes long.
WIDEST = 256
CO_VARARGS = 0x4
CO_VARKEYWORDS = 0x8
BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    dict: ("{", "}"),
}
#: Types whose shape and element type are described. Reading them runs no Python code.
ARRAYS = ("torch.Tensor", "torch.nn.parameter.Parameter", "numpy.ndarray")


def arguments_of(code: CodeType, values: Mapping[str, object]) -> dict[str, object]:
    """Returns the arguments of a function as values for JSON. Never raises."""
    described = {}
    for name in argument_names(code):
        try:
            described[name] = value_of(values[name])
        except Exception:
            continue
    return described


def argument_names(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_varnames[:count]


def value_of(value: object) -> object:
    """Returns a value for JSON: numbers and booleans as they are, others as text."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value if value == value and value not in (float("inf"), float("-inf")) else repr(value)
    if kind is int:
        return value if _is_short(value) and abs(value) < 1 << 53 else text_of(value)  # type: ignore[arg-type]
    if kind is str:
        return _cut(value)  # type: ignore[arg-type]
    text = text_of(value)
    return text if len(text) <= LONGEST_OF_MANY else text[:LONGEST_OF_MANY] + "..."


def text_of(value: object, depth: int = 0) -> str:
    kind = type(value)
    if kind in (int, str, bytes, bytearray, bool, float, complex, type(None), type(...)):
        return _simple(value)
    if kind in BRACKETS:
        return _items(value, depth)
    return _of_a_class(value, kind)


def _simple(value: Any) -> str:
    kind = type(value)
    if kind is int and not _is_short(value):
        return f"<int of {value.bit_length()} bits>"
    if kind in (str, bytes, bytearray):
        return _cut(repr(value[:LONGEST]), len(value) > LONGEST)
    return repr(value)


def _is_short(value: int) -> bool:
    return value.bit_length() <= WIDEST


def _items(value: Any, depth: int) -> str:
    kind = type(value)
    opening, closing = BRACKETS[kind]
    if depth >= DEEPEST:
        return f"{opening}...{closing}" if value else opening + closing
    parts = []
    for index, item in enumerate(list(value.items()) if kind is dict else list(value)):
        if index == MOST_ITEMS:
            parts.append(f"... {len(value)} in all")
            break
        if kind is dict:
            parts.append(f"{text_of(item[0], depth + 1)}: {text_of(item[1], depth + 1)}")
        else:
            parts.append(text_of(item, depth + 1))
    if kind is tuple and len(parts) == 1:
        closing = ",)"
    return opening + ", ".join(parts) + closing


def _of_a_class(value: Any, kind: type) -> str:
    name = name_of(kind)
    if name in ARRAYS:
        shape = "x".join(map(str, value.shape)) or "scalar"
        return f"{kind.__name__}({shape}, {value.dtype})"
    if isinstance(value, type) and kind is type:
        return f"<class {name_of(value)}>"
    return f"<{name}>"


def name_of(kind: type) -> str:
    """Returns the module and name of a type, without calling its metaclass."""
    module = type.__dict__["__module__"].__get__(kind)
    name = type.__dict__["__qualname__"].__get__(kind)
    return str(name) if module == "builtins" else f"{module}.{name}"


def _cut(text: str, is_cut: bool = False) -> str:
    return text if len(text) <= LONGEST and not is_cut else text[:LONGEST] + "..."
