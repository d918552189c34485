"""What can be asked about phases of a recording: what phases() and runs() give."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class CallerCost(NamedTuple):
    """What a function took when a certain one had begun it. Time is in seconds."""

    #: The one that had begun it.
    function: str
    file: str | None
    line: int | None
    calls: int
    primitive_calls: int
    own: float
    total: float
    total_of_all: float


class PhaseCost(NamedTuple):
    """What the phases of a function took, in the terms of cProfile. Time is in seconds.

    calls, own and total_of_all are those of its callers together, and of phases that nothing has begun. total_of_all is
    own, and total_of_all of what it has begun itself.
    """

    function: str
    file: str | None
    line: int | None
    calls: int
    #: Phases of it that were not inside of another such phase.
    primitive_calls: int
    #: What it took itself.
    own: float
    #: What it took with all that it has begun; a phase inside of another such phase is not counted again.
    total: float
    #: The same with every phase counted.
    total_of_all: float
    failed: int
    #: How many were left open when a phase around them ended.
    left_open: int
    bytecode_count: int | None
    #: The least and the greatest.
    inline_depth: tuple[int, int] | None
    #: own for each bytecode, on average of all calls, in nanoseconds.
    ns_per_bytecode: float | None
    callers: tuple[CallerCost, ...]


class Run(NamedTuple):
    """One run: a compilation, a query. Time is in seconds."""

    #: From 1, in the order in which they began.
    number: int
    name: str
    file: str | None
    line: int | None
    #: Since the recording began.
    began: float
    duration: float
    failed: bool
    #: The recording has no end of it.
    unfinished: bool
    #: What was said about it, at its begin and at its end.
    attributes: dict[str, Any]
    #: What its time went to, by the names of phases that have no file; the longest first.
    phases: dict[str, float]
    #: The numbers that the system has given to its thread and process.
    thread: int
    process: int
    #: The number of the run that it is a part of.
    parent: int | None


def phase_costs(rows: list[tuple[Any, ...]]) -> list[PhaseCost]:
    return [PhaseCost(*(*row[:-1], tuple(CallerCost(*caller) for caller in row[-1]))) for row in rows]


def runs_of(rows: list[tuple[Any, ...]]) -> list[Run]:
    return [_run(Run(*row)) for row in rows]


def _run(row: Run) -> Run:
    """The row as Python sees it: attributes are told as JSON, and phases as pairs."""
    told: Any = row
    phases: dict[str, float] = {}
    for name, seconds in told.phases:
        phases[name] = phases.get(name, 0.0) + seconds
    return row._replace(attributes=json.loads(told.attributes), phases=phases)


for _public in (CallerCost, PhaseCost, Run):
    _public.__module__ = "stackweave"
