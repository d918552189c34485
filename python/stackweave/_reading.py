"""What can be asked of a recording that is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import _native, _reading_timing
from ._native import StateError

if TYPE_CHECKING:
    import os
    import pstats
    from collections.abc import Iterable, Iterator

    from ._native import CallTree, Event
    from ._reading_memory import RecordedMemory
    from ._reading_timing import PhaseCost, Run

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
    _Kind = Literal["python", "native", "script", "extra", "label"]
    _Measure = Literal["time", "samples", "bytes", "allocations", "live", "peak", "temporary"]


class FunctionCost(NamedTuple):
    """What a function cost, in the terms of cProfile. Time is in seconds."""

    function: str
    file: str | None
    #: The line that it begins on.
    line: int | None
    calls: int
    #: Calls of it that were not made by such a call.
    primitive_calls: int
    #: What it cost itself.
    own: float
    #: What it cost with all that it called; a call inside another such call is not counted again.
    total: float


class Reading(_native.Feed):
    """The part of a recording that reads."""

    __slots__ = ("_native_options", "_opened_files")

    _native_options: dict[str, Any]
    _opened_files: _native.OpenedRecording | None

    @property
    def path(self) -> str:
        """The file. In a forked child its own."""
        if self.state in ("new", "skipped", "opened"):
            return str(self._native_options["path"])
        return self._path()

    def info(self) -> dict[str, Any]:
        """What was recorded, by whom, and what is missing.

        processes has for each process its pid, parent, host, command_line, python, started, duration, threads, kinds,
        modules, events, bytes, clock and missing; the rest is about all of them. Events are counted by reading them
        all.
        """
        return self._files().info()

    def events(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> Iterator[Event]:
        """The events in the order of time, read as they are asked for.

        process and thread take the numbers that the system has given them, start and end seconds since the recording
        began.
        """
        return self._files().events(_selection(process, thread, start, end))

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
        kinds: Iterable[_Kind] = (),
        lines: bool = False,
        all: bool = False,
    ) -> CallTree:
        """Who called whom, and what it cost.

        Of a recording of memory, measure is "peak" (bytes in use when the process had most) unless it is said; else it
        is "time" if anything took time, else "samples", else "bytes" (of allocations). "allocations", "live" (bytes
        that were not freed) and "temporary" (that were freed soon) are the others. include and exclude take parts of
        names, or patterns such as "file:*/models/*.py", "module:libtorch" and "function:Model.*". The interpreter and
        the inside of libraries are left out, their cost given to who called them, unless all is True. lines tells the
        lines of a function apart.
        """
        options = _profile_options(measure, include, exclude, kinds, lines, all)
        return self._files().tree(_selection(process, thread, start, end), options)

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
        kinds: Iterable[_Kind] = (),
        all: bool = False,
    ) -> list[FunctionCost]:
        """What each function cost, the most expensive first; at most limit of them. The rest is as for tree()."""
        options = _profile_options(measure, include, exclude, kinds, False, all)
        rows = self._files().top(_selection(process, thread, start, end), options)
        return [FunctionCost(*row) for row in rows[:limit]]

    def stats(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kinds: Iterable[_Kind] = (),
        all: bool | None = None,
    ) -> pstats.Stats:
        """The statistics of cProfile, as export(format="pstats") writes them. The arguments are those of tree()."""
        import marshal
        import pstats

        options = _profile_options(None, include, exclude, kinds, False, all)
        table = self._files().pstats(_selection(process, thread, start, end), options)
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
        kinds: Iterable[_Kind] = (),
        all: bool = False,
    ) -> list[PhaseCost]:
        """What each function took, the one that took longest itself first: top() with callers, failures and bytecode.

        Whatever begins and ends is a phase: those of stackweave.Timing, spans, and calls of a trace. The arguments are
        those of tree().
        """
        options = _profile_options(None, include, exclude, kinds, False, all)
        return _reading_timing.phase_costs(self._files().phases(_selection(process, thread, start, end), options))

    def runs(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> list[Run]:
        """What was begun by run() of a stackweave.Timing, in the order in which it began.

        Of a run that reaches out of the time asked for, what lies inside is counted. The arguments are those of
        events().
        """
        options = _profile_options(None, (), (), (), False, False)
        return _reading_timing.runs_of(self._files().runs(_selection(process, thread, start, end), options))

    def phases_text(
        self,
        limit: int | None = 20,
        *,
        sort: Literal["own", "total", "calls", "failed"] = "own",
        only_runs: bool = False,
        width: int | None = None,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kinds: Iterable[_Kind] = (),
        all: bool = False,
    ) -> str:
        """The text of the command stackweave phases: at most limit runs, and as many functions.

        No line is longer than width, if that is said. The rest is as for phases().
        """
        options = _profile_options(None, include, exclude, kinds, False, all)
        request = {"sort": sort, "limit": limit, "runs": only_runs, "width": width}
        return self._files().phases_text(_selection(process, thread, start, end), options, request)

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
        kinds: Iterable[_Kind] = (),
        lines: bool = False,
        all: bool | None = None,
        title: str | None = None,
        time_order: bool = False,
        before: str | os.PathLike[str] | None = None,
        sources: bool | None = None,
        overwrite: bool = False,
        max_size: int | str | None = None,
    ) -> str:
        """Writes it in the format of a viewer, and gives the path.

        The format is the one that the name of the path ends for, unless it is said: report (.html), which is one page
        with everything in it and needs no viewer but a browser; pstats (.prof), chrome (.json),
        perfetto (.pftrace), speedscope (.speedscope.json), pprof (.pb.gz), folded (.folded), flamegraph (.svg),
        callgraph (.callgraph.svg), dot (.dot), firefox (.firefox.json), json (.jsonl) or parquet (a folder); of a
        recording of memory also pytorch (.pickle), allocations (.csv) and memory-curve (.memory.svg). Pictures leave
        out internals unless all is True, the others nothing unless it is False. A flame graph is in the order of
        time with time_order, and coloured by what changed since the recording before, which a report shows too. A
        report has the texts of source files with it if this user has made the recording on this machine; with
        sources=True in any case, with sources=False in none. The rest is as for tree().
        A file that is there is replaced only with overwrite, and a folder only if it is an older export with nothing
        beside it; both stay as they are if something fails. Devices, FIFOs and sockets are written to.
        An export that becomes larger than max_size bytes raises ExportError, and nothing of it stays: a number, a
        text such as "4GB", "none" for no limit; if it is not given, what readers of the format can open.
        """
        import os
        import warnings

        request: dict[str, Any] = {
            "path": os.fspath(path),
            "format": format,
            "title": title,
            "time_order": time_order,
            "before": None if before is None else os.fspath(before),
            "sources": sources,
            "texts": [],
            "overwrite": overwrite,
            "max_size": _max_size(max_size),
        }
        options = _profile_options(measure, include, exclude, kinds, lines, all)
        sentences = self._files().export(_selection(process, thread, start, end), options, request)
        for sentence in self._worth_saying(sentences):
            warnings.warn(sentence, stacklevel=2)
        return os.fspath(path)

    def show(self, *, height: int = 600) -> None:
        """Shows the report below the cell of a notebook, so many pixels high; elsewhere prints a table."""
        import os

        from ._notebook_view import View, show

        show(self, View(height), title=os.path.basename(self.path))  # type: ignore[arg-type]

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
        """What memory was used: peak(), leaks() and the other views of stackweave.memory().

        Without arguments it is read from what the recorder knew at its end; a part is counted anew from the events, as
        are recordings of a program that was killed. temporary is how many other allocations may come before a free that
        counts as one of temporary memory. The rest is as for events().
        """
        from ._reading_memory import RecordedMemory

        query = {"tag": tag, "device": None, "temporary": temporary}
        return RecordedMemory(self._files(), _selection(process, thread, start, end), query)

    def to_arrow(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> Any:
        """The events as a table of pyarrow: those of the parquet export, with names, files and lines beside them.

        A span is one row, from its begin to its end.
        """
        from ._tables import read_events

        return read_events(self, process=process, thread=thread, start=start, end=end)

    def to_pandas(
        self,
        *,
        process: int | None = None,
        thread: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> Any:
        """What to_arrow() gives, as a DataFrame of pandas."""
        from ._tables import needed

        needed("pandas", "to_pandas")
        return self.to_arrow(process=process, thread=thread, start=start, end=end).to_pandas()

    def _worth_saying(self, sentences: list[str]) -> list[str]:
        """Of what is missing in a recording, that which nobody expects."""
        return sentences

    def _files(self) -> _native.OpenedRecording:
        """The recording as it can be read."""
        if self._opened_files is None:
            if self.state == "skipped":
                raise StateError("nothing was recorded here: another one was recording")
            if self.state != "stopped":
                raise StateError("a recording can be read when it is stopped")
            self._opened_files = _native.OpenedRecording([self.path])
        return self._opened_files


class _Profiled:
    """What pstats takes for a profiler."""

    def __init__(self, stats: dict[Any, Any]) -> None:
        self.stats = stats

    def create_stats(self) -> None:
        pass


def _selection(process: int | None, thread: int | None, start: float | None, end: float | None) -> dict[str, Any]:
    return {"process": process, "thread": thread, "start": start, "end": end}


def _max_size(value: int | str | None) -> int | None:
    """Bytes, 0 for no limit, None for that of the format."""
    from ._recording_options import size_of

    if value is None:
        return None
    return 0 if isinstance(value, str) and value.strip().lower() == "none" else size_of("max_size", value)


def _profile_options(
    measure: str | None,
    include: Iterable[str],
    exclude: Iterable[str],
    kinds: Iterable[str],
    lines: bool,
    all: bool | None,
) -> dict[str, Any]:
    def texts(value: Iterable[str]) -> list[str]:
        return [value] if isinstance(value, str) else list(value)

    return {
        "measure": measure,
        "include": texts(include),
        "exclude": texts(exclude),
        "kinds": texts(kinds),
        "lines": lines,
        "all": all,
    }
