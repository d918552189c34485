"""Shows recordings in a notebook: the report page in a frame, or a table of text where there are no frames."""

from __future__ import annotations

import html
import itertools
import linecache
import os
import re
import sys
import tempfile
import threading
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _native
from ..._commands.trace_summary import calls_text
from ..._printable import printable
from ..._reading.recording import _profile_options, _selection
from ..._sizes import duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..._reading.recording import Recording

#: The first bytes of a recording.
_MAGIC = b"\xf5SWV"
#: A text near the beginning of each report.
_REPORT = b"<title>Stackweave report</title>"
ROWS = 20
#: The modules whose threads run cells.
_KERNEL = ("IPython.", "ipykernel.")
#: The report may run its scripts, and has no access to the notebook, whatever a recording contains.
_FRAME = (
    '<iframe srcdoc="{page}" title="Stackweave report: {title}" sandbox="allow-scripts allow-downloads"'
    ' allow="clipboard-write; fullscreen" loading="lazy"'
    ' style="width: 100%; height: {height}px; border: 1px solid #8886; border-radius: 4px"></iframe>'
)


class View(NamedTuple):
    """How a recording is shown."""

    height: int = 600
    #: Shows a table of text, and no report.
    only_table: bool = False
    #: The size in bytes from which a report is written to a file.
    max_size: int = 10_000_000


class Text(NamedTuple):
    """The source of a cell."""

    #: The file name of its frames.
    filename: str
    #: The name that people know: "In [3]".
    name: str
    text: str


def show(recording: Recording, view: View, *, title: str, texts: Iterable[Text] = (), kept: str | None = None) -> None:
    """Shows a recording below the cell that runs, or in a terminal."""
    texts = list(texts)
    thread = own_thread(recording) if texts else None
    names = {text.filename: text.name for text in texts}
    summary = summary_of(recording, kept)
    table = printable("\n".join(filter(None, [summary, *table_lines(recording, names, thread)])))
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel") or view.only_table:
        print(table)
        return
    with tempfile.TemporaryDirectory(prefix="stackweave-") as folder:
        path = os.path.join(folder, "report.html")
        write_report(recording, path, title, texts, thread)
        if os.path.getsize(path) > view.max_size:
            page = _put_beside(path, kept, title)
            markup = _link(page, os.path.getsize(page), summary) + f"<pre>{html.escape(table)}</pre>"
        else:
            with open(path, encoding="utf-8") as file:
                markup = framed(file.read(), title, view.height, table)
    from IPython.display import display  # type: ignore[import-not-found]

    display({"text/html": markup, "text/plain": table}, raw=True)


def framed(page: str, title: str, height: int, table: str) -> str:
    """Returns the page in a frame, with a line below it that opens the table: untrusted notebooks show no frames."""
    frame = _FRAME.format(page=html.escape(page), title=html.escape(title), height=height)
    summary, _, rows = table.partition("\n")
    below = f"<details><summary>{html.escape(summary)}</summary><pre>{html.escape(rows)}</pre></details>"
    return f"<div>{frame}{below}</div>"


def write_report(recording: Recording, path: str, title: str, texts: Iterable[Text], thread: int | None) -> None:
    request = {
        "path": path,
        "format": "report",
        "title": title,
        "time_order": False,
        "before": None,
        "sources": None,
        "texts": [tuple(text) for text in texts],
        "overwrite": True,
        "min_block": None,
        "max_size": None,
    }
    options = _profile_options(None, (), (), (), False, None)
    sentences = recording._files.export(_selection(None, thread, None, None), options, request)
    for missing in recording._worth_saying(sentences):
        warnings.warn(missing, stacklevel=2)


def cells_of(shell: Any) -> list[Text]:
    """Returns the sources of cells that have run."""
    name_of = getattr(shell.compile, "format_code_name", lambda name: None)
    cells = []
    for file in list(linecache.cache):
        name = name_of(file)
        if name is not None:
            number = re.search(r"\d+", name[1])
            cells.append(Text(file, f"In [{number[0]}]" if number else name[1], "".join(linecache.getlines(file))))
    return cells


def own_thread(recording: Recording) -> int | None:
    """Returns the thread of the cell if all others with events are of the kernel, which are not shown then."""
    processes = recording.info()["processes"]
    recorded = {thread["tid"] for process in processes for thread in process["threads"]}
    kernel = {thread.native_id for thread in threading.enumerate() if type(thread).__module__.startswith(_KERNEL)}
    own = threading.get_native_id()
    return own if len(processes) == 1 and own in recorded and recorded <= kernel | {own} else None


def summary_of(recording: Recording, kept: str | None) -> str:
    """Returns a line with the number of calls, the peak of memory, and where the recording is."""
    parts = []
    processes = recording.info()["processes"]
    calls, c_calls = (sum(process["kinds"].get(kind, 0) for process in processes) for kind in ("call", "c-call"))
    if calls or c_calls:
        seconds = max(process["duration"] for process in processes)
        parts.append(f"{calls_text({'calls': calls, 'c_calls': c_calls})} in {duration_text(seconds)}")
    if _has_memory(processes):
        parts.append(f"{size_text(recording.peak().bytes)} at the peak")
    if kept is not None:
        parts.append(f"recorded in {kept}")
    return ", ".join(parts)


def table_lines(recording: Recording, names: dict[str, str], thread: int | None) -> list[str]:
    """Returns the functions with most time; of a recording of memory alone, the stacks with most bytes at the peak."""
    # A function without a call was running on a thread of the kernel all the time.
    rows = [row for row in recording.top(measure="time", thread=thread) if row.calls]
    lines = []
    if rows:
        lines.append(f"{'self':>10} {'total':>10} {'calls':>10}  function")
        for row in rows[:ROWS]:
            times = f"{_time_text(row.self):>10} {_time_text(row.total):>10}"
            lines.append(f"{times} {row.calls:>10,}  {row.name}  {_location(row.filename, row.lineno, names)}".rstrip())
        if len(rows) > ROWS:
            lines.append(f"{'':>32}  and {len(rows) - ROWS:,} more")
    if not rows or _has_memory(recording.info()["processes"]):
        table = recording.peak().table(limit=8, depth=4)
        for file, name in names.items():
            table = table.replace(file, name)
        for folder in sorted(filter(os.path.isabs, sys.path), key=len, reverse=True):
            table = table.replace(folder.rstrip(os.sep) + os.sep, f"...{os.sep}")
        lines.append(table)
    return lines


def _has_memory(processes: list[dict[str, Any]]) -> bool:
    return any(kind.startswith("memory-") for process in processes for kind in process["kinds"])


def is_replaceable(path: str) -> bool:
    """Returns whether a file is a recording, or empty: these are replaced."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) in (_MAGIC, b"")
    except OSError:
        return False


def _location(filename: str | None, lineno: int | None, names: dict[str, str]) -> str:
    if filename is None:
        return ""
    name = names.get(filename, filename)
    if os.path.isabs(name):
        inside = os.path.relpath(name)
        name = os.path.join("...", *filename.split(os.sep)[-2:]) if inside.startswith("..") else inside
    return f"{name}:{lineno}" if lineno else name


def _time_text(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            break
    return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:,.0f} {unit}"


def _put_beside(path: str, kept: str | None, title: str) -> str:
    """Copies the page beside the recording that is kept, or to the folder of the notebook. Returns its name."""
    stem = os.path.splitext(kept)[0] if kept else "stackweave-" + re.sub(r"\W+", "", title)
    endings = itertools.chain([".html"], (f"-{number}.html" for number in itertools.count(2)))
    names = (stem + ending for ending in endings)
    target = next(name for name in names if not os.path.lexists(name) or _is_report(name))
    _native.copy_to_output(path, target, overwrite=_is_report(target))
    return target


def _is_report(path: str) -> bool:
    """Returns whether a file is a report, which may be replaced."""
    try:
        with open(path, "rb") as file:
            return _REPORT in file.read(4096)
    except OSError:
        return False


def _link(page: str, size: int, summary: str) -> str:
    name = html.escape(page)
    large = f"{size_text(size)}: too large for a notebook; --max-size sets how large one may be"
    return f'<p>{html.escape(summary)} <a href="{name}" target="_blank">Open {name}</a> ({html.escape(large)})</p>'


def _shell() -> Any:
    """Returns the shell of IPython that runs this code, if any."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
