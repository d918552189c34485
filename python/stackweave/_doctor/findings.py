"""The findings of the doctor: state, description and remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass
class Finding:
    """The result of one check."""

    #: "problem": captures are slow, or a recorder does not work. "note": useful to know.
    state: Literal["ok", "note", "problem"]
    what: str
    #: The remedy in one line, with commands as they are typed.
    remedy: str | None = None
    #: The same as data, for programs.
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Section:
    """Findings about one subject."""

    title: str
    findings: list[Finding]


def ok(what: str, **values: Any) -> Finding:
    return Finding("ok", what, None, values)


def note(what: str, remedy: str | None = None, **values: Any) -> Finding:
    return Finding("note", what, remedy, values)


def problem(what: str, remedy: str | None = None, **values: Any) -> Finding:
    return Finding("problem", what, remedy, values)


def examine(title: str, checks: Iterable[Callable[[], Iterable[Finding]]]) -> Section:
    """Runs checks. A check that fails becomes a finding, and the others still run."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings.extend(check())
        except Exception as error:
            name = check.__name__.strip("_").replace("_", " ")
            findings.append(note(f"{name} could not be checked: {type(error).__name__}: {error}"))
    return Section(title, findings)
