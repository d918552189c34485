"""How Python programs that a recording one starts come to record: by the environment, and a sitecustomize of ours."""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._recording import Recording

#: What a recording tells others by: how it is written, in the words of the native part.
RECORDING = "STACKWEAVE_RECORDING"
#: For which recording, by what recorder and with which options.
RECORDER = "STACKWEAVE_RECORDER"
SEARCH_PATH = "PYTHONPATH"
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_subprocess_site")
#: A process of multiprocessing's own that only counts what others use.
_NOBODY = "multiprocessing.resource_tracker"


def share(recordings: list[Recording], environment: str | None) -> None:
    """What the environment says from now on, for those that start programs with a copy of os.environ.

    environment is what the native part has left there: it belongs to one of the recordings, or to nobody.
    """
    if environment is None:
        os.environ.pop(RECORDING, None)
    else:
        os.environ[RECORDING] = environment
    told = [recording._for_subprocesses() for recording in recordings if recording._native_options.get("subprocesses")]
    recorder = next((each for each in reversed(told) if each is not None), None)
    if environment is None or recorder is None:
        os.environ.pop(RECORDER, None)
        _search_without_us()
    else:
        os.environ[RECORDER] = repr((environment, *recorder))
        _search_without_us()
        before = os.environ.get(SEARCH_PATH)
        os.environ[SEARCH_PATH] = f"{SITE}{os.pathsep}{before}" if before else SITE


def _search_without_us() -> None:
    before = os.environ.get(SEARCH_PATH)
    if before is not None and SITE in before:
        rest = os.pathsep.join(path for path in before.split(os.pathsep) if path != SITE)
        if rest:
            os.environ[SEARCH_PATH] = rest
        else:
            del os.environ[SEARCH_PATH]


def asked_here() -> tuple[str, dict[str, Any]] | None:
    """By what recorder, and how, this process is to record."""
    try:
        recording, recorder, options = ast.literal_eval(os.environ.get(RECORDER, ""))
    except (SyntaxError, ValueError, TypeError):
        return None
    if recording != os.environ.get(RECORDING) or not isinstance(options, dict):
        return None
    return recorder, options


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """What is done in between does not change what the environment says."""
    before = {name: os.environ.get(name) for name in (RECORDING, RECORDER, SEARCH_PATH)}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value


def record() -> None:
    """Records, from the start of this process to its end. The program never fails for it."""
    asked = asked_here()
    if asked is None or any(_NOBODY in argument for argument in sys.orig_argv):
        return
    recorder, options = asked
    try:
        if recorder == "memory":
            from ._memory import Memory

            Memory._record_subprocess(options)
        elif recorder == "trace":
            from ._trace import Trace

            Trace._record_subprocess(options)
        elif recorder == "record":
            from ._record import Record

            Record._record_subprocess(options)
        elif recorder == "dynamo":
            from .torch.dynamo import Profile

            Profile._record_subprocess(options)
    except Exception as error:
        tell_unrecorded(error)


def tell_unrecorded(error: Exception) -> None:
    """In one line, to whoever looks."""
    from ._printable import printable

    text = f"stackweave: this process is not recorded: {printable(str(error))}\n"
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace"))
