"""Runs a program, records it, and prints a summary at its end."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._open_files import identity_of
from .._printable import printable
from . import program
from .arguments import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._recorders.recorder import Recorder, Summary
    from .arguments import Syntax


class Ended(NamedTuple):
    """A program that has ended, and its recording."""

    #: The command as the user calls it.
    command: str
    recorder: Recorder
    summary: Summary
    seconds: float
    #: The current folder when the program started.
    folder: str


class OfProgram:
    """Makes a recorder leave the exception hooks of the program alone: the command reports exceptions itself."""

    __slots__ = ()

    _watches_exceptions = False


class RecordingCommand(NamedTuple):
    """A command that records programs. Its module NAME_summary has lines()."""

    syntax: Syntax
    make: Callable[..., Recorder]

    @property
    def name(self) -> str:
        return self.syntax.name

    def run(self, command: str, arguments: list[str]) -> int:
        """Returns the exit status, unless the program ends the process itself."""
        request = parse(self.syntax, command, arguments)
        complaint = program.complaint(request.program)
        if complaint is not None:
            return self._refuse(complaint)
        path = request.output or f"{request.program.short_name}.{os.getpid()}.swv"
        if path == "-":
            return self._refuse("standard output is for the program: name a file with -o")
        if os.path.isdir(path):
            return self._refuse(f"{path} is a folder: name a file with -o")
        if request.output and os.path.isfile(path) and "overwrite" not in request.options:
            return self._refuse(f"{path} already exists: name another file with -o, or use --overwrite")
        try:
            recorder = self.make(path, **request.options)
        except (TypeError, ValueError) as error:
            return self._refuse(in_words_of_options(str(error), request.options))
        except (_native.StackweaveError, OSError) as error:
            return self._refuse(str(error))
        # In a container each run may have the same process number: a name that the user did not choose gets a number.
        recorder._native_options["numbered"] = not request.output and "overwrite" not in request.options
        if request.live:
            return self._show(arguments, path, request.output)

        # Imported now: at the end the import system may find the modules of the program, or none.
        lines = import_module(f".{self.name}_summary", __package__).lines

        def begin() -> None:
            ending = _Ending(lines, command, recorder, quiet=request.quiet)
            recorder.start()
            if not request.quiet:
                recorder._announce_as(printable(path).replace("\n", "?"))
            # Between the functions of the recorder and those of the program.
            atexit.register(_native.call_untraced, ending)

        try:
            return program.run(request.program, begin, lambda: _failed(recorder))
        except (_native.StackweaveError, OSError) as error:
            return self._refuse(str(error))

    def _show(self, arguments: list[str], path: str, output: str | None) -> int:
        from . import live_view

        if not live_view.has_terminal():
            return self._refuse(live_view.NO_TERMINAL)
        return live_view.run(self.name, arguments, path, output)

    def _refuse(self, sentence: str) -> int:
        _write(f"stackweave {self.name}: {sentence}\n")
        return 2


def in_words_of_options(sentence: str, options: dict[str, Any]) -> str:
    """Returns an error of a recorder about its options, in the words of the command."""
    sentence = re.sub(r'\b([a-z_]+)="(\w+)"', lambda found: f"{_flag(found[1])} {found[2]}", sentence)
    name = sentence.partition(" ")[0]
    is_ours = any(name in group for group in (options, *options.values()) if isinstance(group, dict))
    return _flag(name) + sentence[len(name) :] if is_ours else sentence


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _failed(recorder: Recorder) -> None:
    """Records that an exception was not handled."""
    kind = getattr(sys, "last_type", None)
    if kind is not None and issubclass(kind, Exception):
        recorder._failed(kind, sys.last_value, sys.last_traceback)


class _Ending:
    """Ends the recording and prints the summary. It is called after the exit functions of the program."""

    def __init__(
        self, lines: Callable[[Ended], Iterable[str]], command: str, recorder: Recorder, *, quiet: bool
    ) -> None:
        from .summary_lines import unrecorded, unwritten  # imported by the module of lines already

        self._lines = lines
        self._unrecorded = unrecorded
        self._unwritten = unwritten
        self._command = command
        self._recorder = recorder
        self._is_quiet = quiet
        self._process = os.getpid()
        self._began = time.monotonic()
        self._folder = os.getcwd()
        self._stderr = identity_of(2)

    def __call__(self) -> None:
        if os.getpid() != self._process:
            return
        self._recorder._end_source()
        seconds = time.monotonic() - self._began
        summary = self._recorder._stop_once(by_program=False, stacklevel=0)  # the lines below report what is missing
        if self._is_quiet or self._stderr is None or identity_of(2) != self._stderr:
            return
        ended = Ended(self._command, self._recorder, summary, seconds, self._folder)
        try:
            is_written = summary.bytes or summary.error is not None
            lines = (*(self._lines if is_written else self._unwritten)(ended), *self._unrecorded(ended))
            text = "".join(f"stackweave: {line}\n" for line in lines)
        except Exception as error:  # the program may have changed everything that we use
            text = f"stackweave: recorded in {summary.path}, and the summary failed: {type(error).__name__}: {error}\n"
        _write(text)


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, printable(text).encode("utf-8", "surrogateescape"))
