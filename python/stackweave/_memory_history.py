"""The history of memory as a table of pyarrow. Imported when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._native import StackweaveError
from ._tables import needed

if TYPE_CHECKING:
    from . import _native

#: Columns of numbers, and what one of them is.
NUMBERS = {
    "time": "float64",
    "freed_at": "float64",
    "address": "uint64",
    "size": "uint64",
    "process": "uint32",
    "thread": "uint32",
    "device": "int64",
}
#: Columns that are places in a list, and the name of the list.
NAMES = {"allocator": "allocators", "tag": "tags", "stack": "stacks"}


def table_of(files: _native.OpenedRecording, selection: dict[str, Any], query: dict[str, Any]) -> Any:
    pyarrow = needed("pyarrow", "to_arrow")
    history = files.memory_history(selection, query)
    if not history["time"] and files.memory(selection, query)["mode"] == "aggregate":
        raise StackweaveError('a recording with mode="aggregate" has no history: figures for each stack only')
    columns = {name: _numbers(pyarrow, history[name], kind) for name, kind in NUMBERS.items()}
    for name, values in NAMES.items():
        columns[name] = _names(pyarrow, _numbers(pyarrow, history[name], "uint32"), history[values])
    freed = columns["freed_at"]
    compute = needed("pyarrow.compute", "to_arrow")
    columns["freed_at"] = compute.if_else(compute.is_nan(freed), None, freed)
    order = ("time", "freed_at", "address", "size", "allocator", "process", "thread", "device", "tag", "stack")
    return pyarrow.table({name: columns[name] for name in order})


def _numbers(pyarrow: Any, column: bytes, kind: str) -> Any:
    type_ = pyarrow.type_for_alias(kind)
    length = len(column) // (type_.bit_width // 8)
    return pyarrow.Array.from_buffers(type_, length, [None, pyarrow.py_buffer(column)])


def _names(pyarrow: Any, places: Any, values: list[Any]) -> Any:
    """The value at each place, by a dictionary of texts: each of them once, and nothing for None."""
    texts: dict[str, int] = {}
    numbers = [None if value is None else texts.setdefault(text_of(value), len(texts)) for value in values]
    indices = pyarrow.array(numbers, "int32").take(places)
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(list(texts), "string"))


def text_of(value: Any) -> str:
    """A name as it is; a stack as the names and places of its frames, innermost first."""
    if isinstance(value, str):
        return value
    return "\n".join(
        f"{frame.qualname or frame.name} ({frame.filename or frame.module or '?'}:{frame.line or 0})"
        for frame in value.frames
    )
