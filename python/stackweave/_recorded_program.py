"""Runs a program with a recording around it, and says at the end where that is."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native, _program
from ._open_files import identity_of
from ._printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ._command_arguments import Asked
    from ._recording import Recording, Summary


class Ended(NamedTuple):
    """What there is to tell."""

    #: How the user calls the command.
    command: str
    recording: Recording
    summary: Summary
    seconds: float
    #: Where the user was.
    folder: str


class OfProgram:
    """The recording of a whole program, whose hooks for exceptions stay as they are."""

    __slots__ = ()

    _watches_exceptions = False


class RecordingCommand(NamedTuple):
    """A command that records programs. Its modules are _NAME_arguments and _NAME_ending, which has lines()."""

    name: str
    make: Callable[..., Recording]
    #: What options of the recording are called here that have other names, or say it in another way.
    words: dict[str, str] = {}  # noqa: RUF012

    def run(self, command: str, arguments: list[str]) -> int:
        """Gives the exit status, unless the program ends the process itself."""
        asked: Asked = self._module("arguments").parse(command, arguments)
        complaint = _program.complaint(asked.program)
        if complaint is not None:
            return self._refuse(complaint)
        path = asked.output or f"{asked.program.short_name}.{os.getpid()}.swv"
        if path == "-":
            return self._refuse("standard output is for the program: name a file with -o")
        if os.path.isdir(path):
            return self._refuse(f"{path} is a folder: name a file with -o")
        if asked.output and os.path.isfile(path) and "overwrite" not in asked.options:
            return self._refuse(f"{path} is there already: name another file with -o, or say --overwrite")
        try:
            recording = self.make(path, **asked.options)
        except (TypeError, ValueError) as error:
            return self._refuse(in_words_of_options(str(error), asked.options, self.words))
        except (_native.StackweaveError, OSError) as error:
            return self._refuse(str(error))
        # Nobody has chosen this name: in a container each run has the same number.
        recording._native_options["numbered"] = not asked.output and "overwrite" not in asked.options
        if asked.live:
            return self._show(arguments, path, asked.output)

        # Imported now: at the end the program's own modules, or none at all, would be found.
        lines = self._module("ending").lines

        def begin() -> None:
            ending = _Ending(lines, command, recording, quiet=asked.quiet)
            recording.start()
            if not asked.quiet:
                recording._announce_as(printable(path).replace("\n", "?"))
            # After those of the recording and before those of the program, so that it runs between them.
            atexit.register(_native.call_untraced, ending)

        try:
            return _program.run(asked.program, begin, lambda: _failed(recording))
        except (_native.StackweaveError, OSError) as error:
            return self._refuse(str(error))

    def _module(self, part: str) -> Any:
        return import_module(f"._{self.name}_{part}", __package__)

    def _show(self, arguments: list[str], path: str, output: str | None) -> int:
        from . import _live_command

        if not _live_command.has_terminal():
            return self._refuse(_live_command.NO_TERMINAL)
        return _live_command.run(self.name, arguments, path, output)

    def _refuse(self, sentence: str) -> int:
        _write(f"stackweave {self.name}: {sentence}\n")
        return 2


def in_words_of_options(sentence: str, options: dict[str, Any], words: dict[str, str]) -> str:
    """What a recording says of its options, as the user has called them."""
    for theirs, ours in words.items():
        sentence = sentence.replace(theirs, ours)
    name = sentence.partition(" ")[0]
    is_ours = any(name in said for said in (options, *options.values()) if isinstance(said, dict))
    return "--" + name.replace("_", "-") + sentence[len(name) :] if is_ours else sentence


def _failed(recording: Recording) -> None:
    """What a recording does when an exception is not handled."""
    kind = getattr(sys, "last_type", None)
    if kind is not None and issubclass(kind, Exception):
        recording._failed(kind, sys.last_value, sys.last_traceback)


class _Ending:
    """Called when the program is over, after all that it has asked for itself."""

    def __init__(
        self, lines: Callable[[Ended], Iterable[str]], command: str, recording: Recording, *, quiet: bool
    ) -> None:
        from ._command_ending import unrecorded  # imported by the module of lines already

        self._lines = lines
        self._unrecorded = unrecorded
        self._command = command
        self._recording = recording
        self._is_quiet = quiet
        self._process = os.getpid()
        self._began = time.monotonic()
        self._folder = os.getcwd()
        self._stderr = identity_of(2)

    def __call__(self) -> None:
        if os.getpid() != self._process:
            return
        self._recording._end_source()
        seconds = time.monotonic() - self._began
        summary = self._recording._stop_once(by_program=False, stacklevel=0)  # the lines below have what is missing
        if self._is_quiet or self._stderr is None or identity_of(2) != self._stderr:
            return
        ended = Ended(self._command, self._recording, summary, seconds, self._folder)
        try:
            lines = (*self._lines(ended), *self._unrecorded(ended))
            text = "".join(f"stackweave: {line}\n" for line in lines)
        except Exception as error:  # the program may have changed whatever we use
            text = f"stackweave: recorded in {summary.path}, and the summary failed: {type(error).__name__}: {error}\n"
        _write(text)


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, printable(text).encode("utf-8", "surrogateescape"))
