"""`stackweave trace`: runs a program with a trace around it, and says at the end where the recording is."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
import warnings

from . import _native, _program
from ._trace import Trace


class _ProgramTrace(Trace):
    """The trace of a whole program, whose hooks for exceptions stay as they are."""

    __slots__ = ()

    _watches_exceptions = False


def main(command: str, arguments: list[str]) -> int:
    """Gives the exit status, unless the program ends the process itself."""
    had = set(sys.modules)
    from . import _trace_arguments

    asked = _trace_arguments.parse(command, arguments)
    for name in {"argparse", "gettext"} - had:
        # The program imports it itself, if it does: it may have a module of that name.
        sys.modules.pop(name, None)
    complaint = _program.complaint(asked.program)
    if complaint is not None:
        return _refuse(complaint)
    path = asked.output or f"{asked.program.short_name}.{os.getpid()}.swv"
    if os.path.exists(path) and "overwrite" not in asked.trace_options:
        return _refuse(f"{path} is there already: name another file with -o, or say --overwrite")
    try:
        trace = _ProgramTrace(path, **asked.trace_options)
        trace._tracer_options["outer"] = False  # the program is what is to be seen, not who runs it
    except (TypeError, ValueError) as error:
        return _refuse(_in_words_of_the_command(str(error), asked.trace_options))

    def begin() -> None:
        trace.start()
        # After those of the trace and before those of the program, so that it runs between them.
        atexit.register(_Ending(command, trace, quiet=asked.quiet))

    try:
        return _program.run(asked.program, begin, lambda: _failed(trace))
    except (_native.StackweaveError, OSError) as error:
        return _refuse(str(error))


def _failed(trace: Trace) -> None:
    """What a recording does when an exception is not handled."""
    kind = getattr(sys, "last_type", None)
    if kind is not None and issubclass(kind, Exception):
        trace._failed(kind, sys.last_value, sys.last_traceback)


def _refuse(sentence: str) -> int:
    _write(f"stackweave trace: {sentence}\n")
    return 2


def _in_words_of_the_command(sentence: str, options: dict[str, object]) -> str:
    name = sentence.partition(" ")[0]
    return "--" + name.replace("_", "-") + sentence[len(name) :] if name in options else sentence


class _Ending:
    """Called when the program is over, after all that it has asked for itself."""

    def __init__(self, command: str, trace: Trace, *, quiet: bool) -> None:
        self._command = command
        self._trace = trace
        self._is_quiet = quiet
        self._process = os.getpid()
        self._began = time.monotonic()
        self._folder = os.getcwd()
        self._stderr = _identity_of_stderr()

    def __call__(self) -> None:
        if os.getpid() != self._process:
            return
        self._trace._end_tracing()
        seconds = time.monotonic() - self._began
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is said in lines of ours
            summary = self._trace._stop_once(by_program=False, stacklevel=1)
        if self._is_quiet or self._stderr is None or _identity_of_stderr() != self._stderr:
            return
        from ._trace_ending import lines

        _write("".join(lines(self._command, self._trace, summary, seconds, self._folder)))


def _identity_of_stderr() -> tuple[int, int] | None:
    """Which file it is: a program may have closed it, and then the number is somebody else's."""
    try:
        found = os.fstat(2)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "surrogateescape"))
