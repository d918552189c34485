"""The rows of phases() and runs() of a Recording."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple


class CallerCost(NamedTuple):
    """The cost of a function when one certain function began it. Times are in seconds.

    >>> with stackweave.Timing() as timing, timing.phase("plan"), timing.phase("parse"):
    ...     main()
    >>> costs = {cost.name: cost for cost in timing.recording.phases()}
    >>> [caller.name for caller in costs["parse"].callers]
    ['plan']
    """

    #: The function that began it.
    name: str
    filename: str | None
    lineno: int | None
    calls: int
    primitive_calls: int
    self: float
    total: float
    total_of_all: float


class PhaseCost(NamedTuple):
    """The cost of a function's phases, in the terms of cProfile. Times are in seconds.

    >>> with stackweave.Timing() as timing, timing.phase("plan", "query.sql", 3):
    ...     main()
    >>> cost = timing.recording.phases()[0]
    >>> cost.name, cost.filename, cost.lineno, cost.calls
    ('plan', 'query.sql', 3, 1)

    calls, self and total_of_all are the sums over its callers and over phases without a caller. total_of_all is the sum
    of self and of total_of_all of the phases that it began.
    """

    name: str
    filename: str | None
    lineno: int | None
    calls: int
    #: Phases that are not inside another phase of this function.
    primitive_calls: int
    #: Time in the function, without the phases that it began.
    self: float
    #: Time in the function and in all phases that it began; a phase inside another one of this function is not counted.
    total: float
    #: The same with every phase counted.
    total_of_all: float
    failed: int
    #: Phases that were left open when a phase around them ended.
    left_open: int
    bytecode_count: int | None
    #: The least and the greatest.
    inline_depth: tuple[int, int] | None
    #: self for each bytecode, on average of all calls, in nanoseconds.
    ns_per_bytecode: float | None
    callers: tuple[CallerCost, ...]


class Run(NamedTuple):
    """One run: a compilation, a query. Times are in seconds.

    >>> with stackweave.Timing() as timing, timing.run("query", rows=3):
    ...     main()
    >>> run = timing.recording.runs()[0]
    >>> run.number, run.name, run.attributes
    (1, 'query', {'rows': 3})
    """

    #: Counted from 1, in the order of their starts.
    number: int
    name: str
    filename: str | None
    lineno: int | None
    #: Since the recording began.
    began: float
    duration: float
    failed: bool
    #: Whether the recording lacks its end.
    unfinished: bool
    #: The attributes that were given at its start and at its end.
    attributes: dict[str, Any]
    #: Its time by the names of phases without a file, the longest first.
    phases: dict[str, float]
    #: The numbers that the system has given to its thread and process.
    thread: int
    process: int
    #: The number of the run that contains it.
    parent: int | None


def phase_costs(rows: list[tuple[Any, ...]]) -> list[PhaseCost]:
    return [PhaseCost(*(*row[:-1], tuple(CallerCost(*caller) for caller in row[-1]))) for row in rows]


def runs_of(rows: list[tuple[Any, ...]]) -> list[Run]:
    return [_run(Run(*row)) for row in rows]


def _run(row: Run) -> Run:
    """Converts a row of the native module, which has attributes as JSON and phases as pairs."""
    native: Any = row
    phases: Counter[str] = Counter()
    for name, seconds in native.phases:
        phases[name] += seconds
    return row._replace(attributes=json.loads(native.attributes), phases=dict(phases.most_common()))


for _public in (CallerCost, PhaseCost, Run):
    _public.__module__ = "stackweave"
