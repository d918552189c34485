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
    "stack": "uint32",
}
#: The columns that are indices of a list, and the name of the list.
NAMES = {"allocator": "allocators", "tag": "tags"}
#: The columns of the table of stacks about the innermost frame, and the name of the list.
FRAME_NAMES = {"name": "names", "filename": "filenames", "kind": "kinds"}


def table_of(files: _native.OpenedRecording, selection: dict[str, Any], query: dict[str, Any]) -> Any:
    pyarrow = needed("pyarrow", "to_arrow")
    history = files.memory_history(selection, query)
    if not len(history["time"]) and files.memory(selection, query)["mode"] == "aggregate":
        raise RecordingError('a recording with mode="aggregate" has no history: figures for each stack only')
    columns = {name: _array(pyarrow, history[name], kind) for name, kind in NUMBERS.items()}
    for name, values in NAMES.items():
        indices = _array(pyarrow, history[name], "int32")
        columns[name] = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(history[values], "string"))
    order = ("time", "freed_at", "address", "size", "allocator", "process", "thread", "device", "tag", "stack")
    return pyarrow.table({name: columns[name] for name in order})


def stacks_of(files: _native.OpenedRecording, selection: dict[str, Any], query: dict[str, Any]) -> Any:
    """Returns the stacks of the rows of table_of(), one row for each."""
    pyarrow = needed("pyarrow", "stacks_to_arrow")
    stacks = files.memory_stacks(selection, query)
    numbers = {name: _array(pyarrow, stacks[name], "uint32") for name in ("stack", "callers", "depth", "frame")}
    frame = numbers.pop("frame")
    names = {name: _names(pyarrow, frame, stacks[values]) for name, values in FRAME_NAMES.items()}
    return pyarrow.table({**numbers, **names, "line": pyarrow.array(stacks["lines"], "uint32").take(frame)})


def _array(pyarrow: Any, column: _native.Column, kind: str) -> Any:
    """Returns a column in place, which the array keeps alive."""

    def buffer(place: tuple[int, int] | None) -> Any:
        return None if place is None else pyarrow.foreign_buffer(*place, base=column)

    buffers = [buffer(column.valid), buffer(column.values)]
    return pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), len(column), buffers)


def _names(pyarrow: Any, numbers_of_values: Any, values: list[Any]) -> Any:
    """Returns the value of each number as a dictionary column, with no value for None."""
    texts: dict[str, int] = {}
    numbers = [None if value is None else texts.setdefault(value, len(texts)) for value in values]
    indices = pyarrow.array(numbers, "int32").take(numbers_of_values)
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(list(texts), "string"))
