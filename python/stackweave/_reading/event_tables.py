"""The events of a recording as a table of pyarrow, by way of the parquet export."""

from __future__ import annotations

import importlib
import os
import tempfile
from typing import TYPE_CHECKING, Any

from .._native import StackweaveError

if TYPE_CHECKING:
    from .recording import Recording

#: The columns about the function, before those of the events table.
NAMES = ("name", "qualname", "filename", "first_line")
#: The columns with few different texts, by table: each text is in memory once.
TEXTS = {"events": ["kind", "event"], "frames": ["name", "qualname", "filename"]}


def needed(module: str, method: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise StackweaveError(f"{method}() needs {package}, which can't be imported: {error}") from None


def read_events(recording: Recording, **selection: Any) -> Any:
    parquet = needed("pyarrow.parquet", "to_arrow")
    pyarrow = importlib.import_module("pyarrow")
    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        exported = recording.export(os.path.join(folder, "out.parquet"), format="parquet", **selection)
        parts = []
        for process in sorted(os.listdir(os.path.join(exported, "events"))):
            events, frames = (
                parquet.ParquetFile(
                    os.path.join(exported, table, process, "part-0.parquet"), read_dictionary=texts
                ).read()
                for table, texts in TEXTS.items()
            )
            parts.append(_named(pyarrow, events, frames, process.partition("=")[2]))
        return pyarrow.concat_tables(parts)


def _named(pyarrow: Any, events: Any, frames: Any, process: str) -> Any:
    """Returns the events, each with the names of its frame."""
    places = importlib.import_module("pyarrow.compute").index_in(events["frame"], value_set=frames["frame"])
    for position, name in enumerate(NAMES):
        events = events.add_column(position, name, frames[name].unify_dictionaries().combine_chunks().take(places))
    indices = pyarrow.Array.from_buffers(pyarrow.uint8(), len(events), [None, pyarrow.py_buffer(bytes(len(events)))])
    return events.add_column(0, "process", pyarrow.DictionaryArray.from_arrays(indices, [process]))
