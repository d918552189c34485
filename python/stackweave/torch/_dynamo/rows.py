"""The compilations of a recording, as rows and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._reading.phases import Run
    from ..._reading.recording import Recording


class Compile(NamedTuple):
    """One compilation. Times are in seconds.

    >>> with stackweave.torch.dynamo.profile() as recorder:
    ...     main()
    >>> [compile.name for compile in stackweave.torch.dynamo.compiles(recorder.recording)]
    []
    """

    #: Counted from 1, in the order of their starts.
    number: int
    #: The ID of torch: "0/1" is the second compilation of the first frame.
    compile_id: str | None
    name: str
    filename: str | None
    lineno: int | None
    #: "forward", or "backward" for a backward graph that is compiled when it is first needed.
    direction: str
    backend: str | None
    duration: float
    #: The number of starts of tracing: it starts again after a graph break.
    attempts: int
    restart_reasons: tuple[str, ...]
    #: The guard that failed, if it was compiled before.
    recompile_reason: str | None
    graph_ops: int | None
    graph_nodes: int | None
    graph_inputs: int | None
    guards: int | None
    graph_breaks: int | None
    failed: bool
    #: The reason why it failed, or why torch did not compile the frame.
    fail_reason: str | None
    #: The time of each of torch's phases in it.
    phases: dict[str, float]
    #: The number of the compilation that contains it.
    parent: int | None
    thread: int
    process: int
    #: Everything that was recorded about it.
    attributes: dict[str, Any]


def compiles(recording: Recording) -> list[Compile]:
    """Returns a row for each compilation of a recording of profile(), in the order in which they began.

    >>> with stackweave.torch.dynamo.profile() as recorder:
    ...     main()
    >>> stackweave.torch.dynamo.compiles(recorder.recording)
    []
    """
    return [_compile(run) for run in recording.runs() if "compile_id" in run.attributes]


def _compile(run: Run) -> Compile:
    known = run.attributes
    return Compile(
        number=run.number,
        compile_id=known["compile_id"],
        name=known.get("function", run.name),
        filename=run.filename,
        lineno=run.lineno,
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


def report(recording: Recording, count: int = 20, *, errors: Sequence[str] = ()) -> str:
    """Returns a text with the compilations, and the functions and phases that took most time, count of each.

    >>> with stackweave.torch.dynamo.profile() as recorder:
    ...     main()
    >>> stackweave.torch.dynamo.report(recorder.recording)
    'Nothing was compiled.'

    errors are lines about what is missing: hook_errors() of the recorder.
    """
    rows = compiles(recording)
    parts = [_summary(rows)]
    if rows:
        parts += ["", recording.phases_text(count).rstrip()]
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


for _public in (Compile, compiles, report):
    _public.__module__ = "stackweave.torch.dynamo"
