"""`Recording`: reads what a recorder has written. `open` makes one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from .. import _native
from .costs import Costs
from .phases import phase_costs, runs_of

if TYPE_CHECKING:
    import pstats
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

    from .._native import CallTree, Event
    from .memory import RecordedMemory
    from .memory_usage import Usage
    from .phases import PhaseCost, Run

    _Path = str | os.PathLike[str]
    _Format = Literal[
        "report",
        "pstats",
        "chrome",
        "perfetto",
        "speedscope",
        "pprof",
        "folded",
        "flamegraph",
        "callgraph",
        "dot",
        "firefox",
        "json",
        "parquet",
        "pytorch",
        "allocations",
        "memory-curve",
    ]
    _Kind = Literal["python", "native", "script", "extra", "span"]
    _Measure = Literal["time", "samples", "bytes", "allocations", "live", "peak", "temporary"]


class FunctionCost(NamedTuple):
    """The cost of one function, in the terms of cProfile. Times are in seconds.

    >>> with stackweave.trace("calls.swv") as recorder:
    ...     main()
    >>> [cost] = [cost for cost in recorder.recording.top() if cost.name == "main"]
    >>> cost.calls, cost.self <= cost.total
    (1, True)
    """

    name: str
    filename: str | None
    #: The first line of the function.
    lineno: int | None
    calls: int
    #: Calls that are not recursive.
    primitive_calls: int
    #: The cost of the function without the functions that it calls.
    self: float
    #: The cost of the function with all that it calls; recursive calls are counted once.
    total: float


class Recording:
    """Reads a recording: one file, a folder of files, or several of both. All processes are in it.

    stackweave.open(path) returns one, and so does the property `recording` of a recorder.

    >>> with stackweave.trace("calls.swv"):
    ...     main()
    >>> recording = stackweave.Recording("calls.swv")
    >>> recording.export("report.html")
    'report.html'
    """

    __slots__ = ("__weakref__", "_files", "_is_unfinished", "_path")

    def __init__(self, path: _Path | Iterable[_Path], /) -> None:
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        names = [os.fsdecode(each) for each in paths]
        self._path = ", ".join(names)
        self._files = _native.OpenedRecording(names)
        #: Whether the recorder continues. If so, the missing end of the file is not reported.
        self._is_unfinished = False

    @property
    def path(self) -> str:
        """The file that is read; several are separated by commas. Empty for a temporary file."""
        return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __reduce__(self) -> NoReturn:
        raise TypeError("a recording can't be pickled: open its file in the other process")

    def __repr__(self) -> str:
        return f"<stackweave.Recording {self._path!r}>"

    def info(self) -> dict[str, Any]:
        """Returns what was recorded, by which processes, and what is missing.

        "processes" has for each process its pid, parent, host, command_line, python, started, duration, threads, kinds,
        modules, events, bytes, clock and missing; the other keys are about all processes. All events are read to count
        them.
        """
        return self._files.info()

    def events(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> Iterator[Event]:
        """Iterates over the events in the order of time. They are read as the iterator advances.

        process and thread select by the numbers of the system; start and end are seconds since the recording began.
        """
        return self._files.events(_selection(process, thread, start, end))

    def tree(
        self,
        *,
        measure: _Measure | None = None,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kind: _Kind | Iterable[_Kind] = (),
        lines: bool = False,
        all: bool = False,
    ) -> CallTree:
        """Returns the tree of callers and callees with their costs.

        measure of a recording of memory is "peak" by default: the bytes that were live when the process had most.
        Otherwise it is "time" if anything took time, else "samples", else "bytes" (allocated). "allocations", "live"
        (bytes that were not freed) and "temporary" (bytes that were freed soon) are the others. include and exclude
        take parts of names, or patterns such as "file:*/models/*.py", "module:libtorch" and "function:Model.*". Frames
        of the interpreter and of the inside of libraries are hidden, and their cost is that of their callers, unless
        all is True: hidden of the result says how much. lines=True distinguishes the lines of a function.
        """
        options = _profile_options(measure, include, exclude, kind, lines, all)
        return self._files.tree(_selection(process, thread, start, end), options)

    def top(
        self,
        limit: int | None = None,
        *,
        measure: _Measure | None = None,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kind: _Kind | Iterable[_Kind] = (),
        all: bool = False,
    ) -> Costs[FunctionCost]:
        """Returns the cost of each function, the most expensive first, at most limit of them, with what is hidden.

        Arguments: see tree().
        """
        options = _profile_options(measure, include, exclude, kind, False, all)
        rows, hidden = self._files.top(_selection(process, thread, start, end), options)
        return Costs((FunctionCost(*row) for row in rows[:limit]), hidden)

    def stats(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kind: _Kind | Iterable[_Kind] = (),
        all: bool | None = None,
    ) -> pstats.Stats:
        """Returns the statistics of cProfile, as export(format="pstats") writes them. Arguments: see tree()."""
        import marshal
        import pstats

        options = _profile_options(None, include, exclude, kind, False, all)
        table = self._files.pstats(_selection(process, thread, start, end), options)
        profiler: Any = _Profiled(marshal.loads(table))
        return pstats.Stats(profiler)

    def phases(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kind: _Kind | Iterable[_Kind] = (),
        all: bool = False,
    ) -> Costs[PhaseCost]:
        """Returns the cost of each function with its callers, failures and bytecode, the highest self time first.

        Everything with a start and an end is a phase: those of stackweave.Timing, spans, and calls of a trace.
        Arguments: see tree().
        """
        options = _profile_options(None, include, exclude, kind, False, all)
        rows, hidden = self._files.phases(_selection(process, thread, start, end), options)
        return Costs(phase_costs(rows), hidden)

    def runs(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> list[Run]:
        """Returns what run() of a stackweave.Timing has begun, in order of time.

        A run that is partly outside the selected time counts with the part inside. Arguments: see events().
        """
        options = _profile_options(None, (), (), (), False, False)
        return runs_of(self._files.runs(_selection(process, thread, start, end), options))

    def phases_text(
        self,
        limit: int | None = 20,
        *,
        sort: Literal["self", "total", "calls", "failed"] = "self",
        only_runs: bool = False,
        width: int | None = None,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kind: _Kind | Iterable[_Kind] = (),
        all: bool = False,
    ) -> str:
        """Returns the text that the command `stackweave phases` prints: at most limit runs, and as many functions.

        width limits the length of lines. Other arguments: see phases().
        """
        options = _profile_options(None, include, exclude, kind, False, all)
        request = {"sort": sort, "limit": limit, "runs": only_runs, "width": width}
        return self._files.phases_text(_selection(process, thread, start, end), options, request)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: _Format | None = None,
        measure: _Measure | None = None,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kind: _Kind | Iterable[_Kind] = (),
        lines: bool = False,
        all: bool | None = None,
        title: str | None = None,
        time_order: bool = False,
        before: str | os.PathLike[str] | None = None,
        sources: bool | None = None,
        overwrite: bool = False,
        min_block: int | str | None = None,
        max_size: int | str | None = None,
    ) -> str:
        """Writes the recording in the format of a viewer, and returns the path.

        The format follows from the end of the path, unless it is given: report (.html), one page with everything in it
        that needs only a browser; pstats (.prof), chrome (.json), perfetto (.pftrace), speedscope (.speedscope.json),
        pprof (.pb.gz), folded (.folded), flamegraph (.svg), callgraph (.callgraph.svg), dot (.dot), firefox
        (.firefox.json), json (.jsonl) or parquet (a folder); for a recording of memory also pytorch (.pickle),
        allocations (.csv) and memory-curve (.memory.svg). Pictures, and stacks of the process's memory in allocations
        and pytorch, hide internals unless all is True; other formats hide nothing unless all is False.

        With time_order a flame graph is in the order of time. before is an earlier recording: a flame graph is coloured
        by the difference, and a report shows it. A report contains the texts of source files if this user made the
        recording on this machine; sources=True always includes them, sources=False never does. Other arguments: see
        tree().

        Of more than 200,000 blocks, pytorch leaves out the smallest that are freed again: those of less than min_block
        bytes, if that is given, a number or a text such as "1KB"; 0 leaves out none.

        An existing file is replaced only with overwrite=True, an existing folder only if it holds nothing but an older
        export. Both stay as they are if the export fails. Devices, FIFOs and sockets are written to. An export that
        becomes larger than max_size bytes raises ExportError and leaves nothing behind: max_size is a number, a text
        such as "4GB", or "none" for no limit. The default is what readers of the format can open.
        """
        import warnings

        from .._sizes import size_of

        request: dict[str, Any] = {
            "path": os.fspath(path),
            "format": format,
            "title": title,
            "time_order": time_order,
            "before": None if before is None else os.fspath(before),
            "sources": sources,
            "texts": [],
            "overwrite": overwrite,
            "min_block": size_of("min_block", min_block) if min_block else min_block,
            "max_size": _max_size(max_size),
        }
        options = _profile_options(measure, include, exclude, kind, lines, all)
        sentences = self._files.export(_selection(process, thread, start, end), options, request)
        for sentence in self._worth_saying(sentences):
            warnings.warn(sentence, stacklevel=2)
        return os.fspath(path)

    def show(self, *, height: int = 600) -> None:
        """Shows the report below the cell of a notebook, height pixels high; elsewhere prints a table."""
        import os

        from .._integrations.notebook.view import View, show

        show(self, View(height), title=os.path.basename(self.path))

    def memory(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        tag: str | None = None,
        temporary: int | None = None,
    ) -> RecordedMemory:
        """Returns the views of the memory that was recorded: peak(), leaks(), and others.

        Without arguments it is read from the snapshot that the recorder wrote at its end. For a part of the recording,
        or if the program was killed, it is computed from the events. temporary is the number of other allocations of a
        thread after which a block that is freed no longer counts as temporary. Other arguments: see events().
        """
        from .memory import RecordedMemory

        query = {"tag": tag, "device": None, "temporary": temporary}
        return RecordedMemory(self._files, _selection(process, thread, start, end), query)

    def peak(self, *, device: int | None = None) -> Usage:
        """Returns memory().peak(): what was live when most memory was."""
        return self.memory().peak(device=device)

    def leaks(self, *, device: int | None = None) -> Usage:
        """Returns memory().leaks(): what was allocated and not freed."""
        return self.memory().leaks(device=device)

    def to_arrow(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> Any:
        """Returns the events as a table of pyarrow: those of the parquet export, with names, files and lines.

        A span is one row, from its start to its end.
        """
        from .event_tables import read_events

        return read_events(self, process=process, thread=thread, start=start, end=end)

    def to_pandas(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> Any:
        """Returns the table of to_arrow() as a DataFrame of pandas."""
        from .event_tables import needed

        needed("pandas", "to_pandas")
        return self.to_arrow(process=process, thread=thread, start=start, end=end).to_pandas()

    def _worth_saying(self, sentences: list[str]) -> list[str]:
        """Returns the sentences about missing data that the reader does not expect."""
        return [each for each in sentences if not (self._is_unfinished and "was not closed" in each)]


def open(path: _Path | Iterable[_Path], /) -> Recording:
    """Opens a recording: a file, a folder of files, or several of both. All processes are in it.

    >>> with stackweave.trace("calls.swv"):
    ...     main()
    >>> stackweave.open("calls.swv")
    <stackweave.Recording 'calls.swv'>
    """
    return Recording(path)


def open_unfinished(file: str, path: str) -> Recording:
    """Opens a file that a recorder still writes, and that is known by this path."""
    recording = Recording(file)
    recording._path = path
    recording._is_unfinished = True
    return recording


class _Profiled:
    """Has the two attributes that pstats expects of a profiler."""

    def __init__(self, stats: dict[Any, Any]) -> None:
        self.stats = stats

    def create_stats(self) -> None:
        pass


def _selection(process: int | None, thread: int | None, start: float | None, end: float | None) -> dict[str, Any]:
    return {"process": process, "thread": thread, "start": start, "end": end}


def _max_size(value: int | str | None) -> int | None:
    """Returns bytes, 0 for no limit, or None for the limit of the format."""
    from .._sizes import size_of

    if value is None:
        return None
    return 0 if isinstance(value, str) and value.strip().lower() == "none" else size_of("max_size", value)


def _profile_options(
    measure: str | None,
    include: Iterable[str],
    exclude: Iterable[str],
    kind: Iterable[str],
    lines: bool,
    all: bool | None,
) -> dict[str, Any]:
    def texts(value: Iterable[str]) -> list[str]:
        return [value] if isinstance(value, str) else list(value)

    return {
        "measure": measure,
        "include": texts(include),
        "exclude": texts(exclude),
        "kind": texts(kind),
        "lines": lines,
        "all": all,
    }


for _public in (FunctionCost, Recording, open):
    _public.__module__ = "stackweave"
