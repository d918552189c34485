"""`stackweave doctor`: reports whether captures run at full speed, and what is missing."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import platform
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from .. import __version__
from .._sizes import count_text
from .findings import Finding, Section, examine, note

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIPTION = """Report whether captures and recordings work at full speed here, and how to get what is missing:
debug information, the permission to read processes, disk space for recordings."""

EXAMPLES = """Examples:
  stackweave doctor
  stackweave doctor --import torch,numpy
  stackweave doctor --json

Exit status:
  0 if captures work at full speed and calls and memory can be recorded, 1 if there is a problem"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"stackweave doctor: {message}; see {self.prog} --help\n")


def parser(command: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"{command} doctor",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-m",
        "--import",
        dest="imported",
        metavar="MODULES",
        action="append",
        default=[],
        help="import these modules first, like torch,numpy, and check their libraries, too",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    return parser


def main(command: str, arguments: list[str]) -> int:
    """Returns the exit status."""
    options = parser(command).parse_args(arguments)
    names = [name.strip() for given in options.imported for name in given.split(",") if name.strip()]
    try:
        sections = list(_sections(names))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
        raise
    has_problem = any(finding.state == "problem" for section in sections for finding in section.findings)
    try:
        (_write_json if options.json else _write_text)(sections, has_problem)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(has_problem)


def _sections(names: list[str]) -> Iterator[Section]:
    if names:
        yield examine("Imports", [lambda: _imports(names)])
    from . import capture, modules, neighbours, recorders, system

    others = neighbours.section()  # before the checks of recorders start some
    for part in (capture, recorders, modules, system):
        yield part.section()
    yield others


def _imports(names: list[str]) -> Iterator[Finding]:
    for name in names:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # its output is no part of the findings
                importlib.import_module(name)
        except (Exception, SystemExit) as error:
            yield note(f"{name} can't be imported: {type(error).__name__}: {error}", imported=name)


def _heading() -> str:
    system = f"{platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}"
    return f"Stackweave {__version__} with {platform.python_implementation()} {platform.python_version()}, {system}"


def _summary(sections: list[Section], has_problem: bool) -> str:
    states = [finding.state for section in sections for finding in section.findings]
    problems, notes = states.count("problem"), states.count("note")
    counted = [count_text(problems, "problem")] if problems else []
    counted += [count_text(notes, "note")] if notes else []
    found = " and ".join(counted) if counted else "nothing to improve"
    verdict = "Captures or recorders do not work at full speed" if has_problem else "Captures work at full speed"
    return f"{verdict}: {found}."


def _write_text(sections: list[Section], has_problem: bool) -> None:
    from .text import lines, wants_colour

    for line in lines(_heading(), sections, _summary(sections, has_problem), colour=wants_colour()):
        print(line)


def _write_json(sections: list[Section], has_problem: bool) -> None:
    import json

    found = {
        "stackweave": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "full_speed": not has_problem,
        "findings": [
            {
                "section": section.title,
                "state": finding.state,
                "what": finding.what,
                "remedy": finding.remedy,
                "values": finding.values,
            }
            for section in sections
            for finding in section.findings
        ],
    }
    json.dump(found, sys.stdout, indent=2)
    print()
