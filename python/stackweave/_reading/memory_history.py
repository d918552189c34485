"""The history of memory as a table of pyarrow. Imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._native import RecordingError
from .event_tables import needed

if TYPE_CHECKING:
    from .. import _native

#: The columns of numbers, and their types.
NUMBERS = {
    "time": "float64",
    "freed_at": "float64",
    "address": "uint64",
    "size": "uint64",
    "process": "uint32",
    "thread": "uint32",
    "device": "int64",
}
#: The columns that are indices of a list, and the name of the list.
NAMES = {"allocator": "allocators", "tag": "tags"}
#: The columns of the table of stacks about the innermost frame, and the name of the list.
FRAME_NAMES = {"name": "names", "filename": "filenames", "kind": "kinds"}


def table_of(files: _native.OpenedRecording, selection: dict[str, Any], query: dict[str, Any]) -> Any:
    pyarrow = needed("pyarrow", "to_arrow")
    history = files.memory_history(selection, query, False)
    if not history["time"] and files.memory(selection, query)["mode"] == "aggregate":
        raise RecordingError('a recording with mode="aggregate" has no history: figures for each stack only')
    columns = {name: _numbers(pyarrow, history[name], kind) for name, kind in NUMBERS.items()}
    for name, values in NAMES.items():
        columns[name] = _names(pyarrow, _numbers(pyarrow, history[name], "uint32"), history[values])
    columns["stack"] = _or_null(pyarrow, _numbers(pyarrow, history["stack"], "uint32"))
    freed = columns["freed_at"]
    compute = needed("pyarrow.compute", "to_arrow")
    columns["freed_at"] = compute.if_else(compute.is_nan(freed), None, freed)
    order = ("time", "freed_at", "address", "size", "allocator", "process", "thread", "device", "tag", "stack")
    return pyarrow.table({name: columns[name] for name in order})


def stacks_of(files: _native.OpenedRecording, selection: dict[str, Any], query: dict[str, Any]) -> Any:
    """Returns the stacks of the rows of table_of(), one row for each."""
    pyarrow = needed("pyarrow", "stacks_to_arrow")
    stacks = files.memory_history(selection, query, True)["stacks"]
    numbers = {name: _numbers(pyarrow, stacks[name], "uint32") for name in ("stack", "callers", "depth", "frame")}
    frame = numbers.pop("frame")
    numbers["callers"] = _or_null(pyarrow, numbers["callers"])
    names = {name: _names(pyarrow, frame, stacks[values]) for name, values in FRAME_NAMES.items()}
    return pyarrow.table({**numbers, **names, "line": pyarrow.array(stacks["lines"], "uint32").take(frame)})


def _or_null(pyarrow: Any, numbers: Any) -> Any:
    """Returns the same numbers, with no value for 0."""
    compute = needed("pyarrow.compute", "to_arrow")
    return compute.if_else(compute.equal(numbers, 0), None, numbers)


def _numbers(pyarrow: Any, column: bytes, kind: str) -> Any:
    type_ = pyarrow.type_for_alias(kind)
    length = len(column) // (type_.bit_width // 8)
    return pyarrow.Array.from_buffers(type_, length, [None, pyarrow.py_buffer(column)])


def _names(pyarrow: Any, numbers_of_values: Any, values: list[Any]) -> Any:
    """Returns the value of each number as a dictionary column, with no value for None."""
    texts: dict[str, int] = {}
    numbers = [None if value is None else texts.setdefault(value, len(texts)) for value in values]
    indices = pyarrow.array(numbers, "int32").take(numbers_of_values)
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(list(texts), "string"))
