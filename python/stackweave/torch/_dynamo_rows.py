"""The compilations of a recording, as rows and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .._reading import Reading
    from .._reading_timing import Run

#: The phases that a report names, in the order in which they come; each of the middle ones is inside the one before.
MAIN_PHASES = (
    "bytecode_tracing",
    "backend_compile",
    "create_aot_dispatcher_function",
    "inductor_compile",
    "code_gen",
    "async_compile.wait",
    "build_guards",
    "gc",
)
#: Such a part of a compilation is worth a word.
SMALLEST_PART = 0.01


class Compile(NamedTuple):
    """One compilation. Times are in seconds."""

    #: From 1, in the order in which they began.
    number: int
    #: What torch calls it: "0/1" is the second compilation of the first frame.
    compile_id: str | None
    function: str
    file: str | None
    line: int | None
    #: "forward", or "backward" for a backward graph that is compiled when it is first needed.
    direction: str
    backend: str | None
    duration: float
    #: How often tracing has begun: it begins anew after a graph break.
    attempts: int
    restart_reasons: tuple[str, ...]
    #: Which guard has failed, if it was compiled before.
    recompile_reason: str | None
    graph_ops: int | None
    graph_nodes: int | None
    graph_inputs: int | None
    guards: int | None
    graph_breaks: int | None
    failed: bool
    #: Why it has failed, or why torch has left the frame as it is.
    fail_reason: str | None
    #: The time of each of torch's phases in it.
    phases: dict[str, float]
    #: The number of the compilation that it was part of.
    parent: int | None
    thread: int
    process: int
    #: Everything that was written down about it.
    attributes: dict[str, Any]


def compiles(recording: Reading) -> list[Compile]:
    """A row for each compilation of a recording that a profile has made, in the order in which they began."""
    return [_compile(run) for run in recording.runs() if "compile_id" in run.attributes]


def _compile(run: Run) -> Compile:
    known = run.attributes
    return Compile(
        number=run.number,
        compile_id=known["compile_id"],
        function=known.get("function", run.name),
        file=run.file,
        line=run.line,
        direction=known.get("direction", "forward"),
        backend=known.get("backend"),
        duration=run.duration,
        attempts=known.get("attempts", 0),
        restart_reasons=tuple(known.get("restart_reasons", ())),
        recompile_reason=known.get("recompile_reason"),
        graph_ops=known.get("graph_ops"),
        graph_nodes=known.get("graph_nodes"),
        graph_inputs=known.get("graph_inputs"),
        guards=known.get("guards"),
        graph_breaks=known.get("graph_breaks"),
        failed=run.failed,
        fail_reason=known.get("fail_reason") or known.get("error") or known.get("skipped"),
        phases=run.phases,
        parent=run.parent,
        thread=run.thread,
        process=run.process,
        attributes=known,
    )


def report(recording: Reading, count: int, errors: list[str]) -> str:
    """The compilations, and what took most of the time."""
    rows = compiles(recording)
    parts = [_summary(rows), *(_lines(row) for row in rows)]
    if rows:
        parts += ["", _costs(recording, count)]
    if errors:
        parts += ["", "Something was missed while torch compiled:", *(f"  {line}" for line in errors)]
    return "\n".join(parts)


def _summary(rows: list[Compile]) -> str:
    if not rows:
        return "Nothing was compiled."
    seconds = sum(row.duration for row in rows if row.parent is None)
    counts = {
        "recompilation": sum(row.recompile_reason is not None for row in rows),
        "restart": sum(max(row.attempts - 1, 0) for row in rows),
        "failure": sum(row.failed for row in rows),
    }
    more = "".join(f", {_counted(number, name)}" for name, number in counts.items() if number)
    return f"{_counted(len(rows), 'compilation')} in {seconds:.3f} s{more}"


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _lines(row: Compile) -> str:
    where = f" ({row.file}:{row.line})" if row.file else ""
    what = f"{row.function}{where}" if row.direction == "forward" else f"backward of {row.function}{where}"
    lines = [f"{row.number:>4}  {row.duration:>9.3f} s  [{row.compile_id}] {what}"]
    phases = [(name, row.phases.get(name, 0.0)) for name in MAIN_PHASES]
    told = {
        "phases": ", ".join(f"{name} {time:.3f}" for name, time in phases if time > SMALLEST_PART * row.duration),
        "graph": _counted(row.graph_ops, "operation") if row.graph_ops is not None else "",
        "recompiled": row.recompile_reason,
        "restarted": "; ".join(row.restart_reasons),
        "failed" if row.failed else "skipped": row.fail_reason,
    }
    return "\n".join([*lines, *(f"{name:>20}: {text}" for name, text in told.items() if text)])


def _costs(recording: Reading, count: int) -> str:
    rows = sorted(recording.phases(), key=lambda row: row.own, reverse=True)
    lines = [f"{'calls':>8} {'own s':>10} {'total s':>10} {'failed':>7}  function or phase"]
    for row in rows[:count]:
        where = f" ({row.file}:{row.line})" if row.file else ""
        calls = f"{row.calls}/{row.primitive_calls}" if row.calls != row.primitive_calls else f"{row.calls}"
        lines.append(f"{calls:>8} {row.own:>10.4f} {row.total:>10.4f} {row.failed:>7}  {row.function}{where}")
    if len(rows) > count:
        lines.append(f"... and {len(rows) - count} more")
    return "\n".join(lines)


for _public in (Compile, compiles):
    _public.__module__ = "stackweave.torch.dynamo"
