"""What the doctor finds: whether it is good, what it is, and what helps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass
class Finding:
    """One thing that was looked at."""

    #: problem: captures are not at full speed, or a recorder does not work. note: good to know.
    state: Literal["ok", "note", "problem"]
    what: str
    #: What helps, in one line; commands stand in it as they are typed.
    remedy: str | None = None
    #: The same for programs.
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Section:
    """What belongs together."""

    title: str
    findings: list[Finding]


def ok(what: str, **values: Any) -> Finding:
    return Finding("ok", what, None, values)


def note(what: str, remedy: str | None = None, **values: Any) -> Finding:
    return Finding("note", what, remedy, values)


def problem(what: str, remedy: str | None = None, **values: Any) -> Finding:
    return Finding("problem", what, remedy, values)


def examine(title: str, checks: Iterable[Callable[[], Iterable[Finding]]]) -> Section:
    """Runs checks. One that fails is a finding of its own, and hinders no other."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings.extend(check())
        except Exception as error:
            name = check.__name__.strip("_").replace("_", " ")
            findings.append(note(f"{name} could not be checked: {type(error).__name__}: {error}"))
    return Section(title, findings)
