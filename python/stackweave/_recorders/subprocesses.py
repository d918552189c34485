"""Makes Python programs record that a recorded one starts: by the environment, and a sitecustomize of ours."""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from .._location import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .recorder import Recorder

#: How the recording is written, in the form of the native module.
RECORDING = "STACKWEAVE_RECORDING"
#: The recording, the recorder and its options.
RECORDER = "STACKWEAVE_RECORDER"
SEARCH_PATH = "PYTHONPATH"
SITE = os.path.join(FOLDER, "_subprocess_site")
#: A process of multiprocessing that only counts resources of others.
_UNRECORDED = "multiprocessing.resource_tracker"


def share(recorders: list[Recorder], environment: str | None) -> None:
    """Sets os.environ for programs that are started with a copy of it.

    environment is the value of the native module, which belongs to one of the recorders, or is None.
    """
    if environment is None:
        os.environ.pop(RECORDING, None)
    else:
        os.environ[RECORDING] = environment
    shared = [each._for_subprocesses() for each in recorders if each._native_options.get("subprocesses")]
    recorder = next((each for each in reversed(shared) if each is not None), None)
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


def requested_recorder() -> tuple[str, dict[str, Any]] | None:
    """Returns the recorder and the options that the environment requests for this process."""
    try:
        recording, recorder, options = ast.literal_eval(os.environ.get(RECORDER, ""))
    except (SyntaxError, ValueError, TypeError):
        return None
    if recording != os.environ.get(RECORDING) or not isinstance(options, dict):
        return None
    return recorder, options


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """Restores the variables at the end of the block."""
    before = {name: os.environ.get(name) for name in (RECORDING, RECORDER, SEARCH_PATH)}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value


def record() -> None:
    """Records this process from its start to its end. The program never fails because of it."""
    request = requested_recorder()
    if request is None or any(_UNRECORDED in argument for argument in sys.orig_argv):
        return
    recorder, options = request
    try:
        if recorder == "memory":
            from .memory import MemoryRecorder

            MemoryRecorder._record_subprocess(options)
        elif recorder == "trace":
            from .trace import TraceRecorder

            TraceRecorder._record_subprocess(options)
        elif recorder == "record":
            from .combined import CombinedRecorder

            CombinedRecorder._record_subprocess(options)
        elif recorder == "dynamo":
            from ..torch.dynamo import DynamoRecorder

            DynamoRecorder._record_subprocess(options)
    except Exception as error:
        report_unrecorded(error)


def report_unrecorded(error: Exception) -> None:
    """Prints in one line why this process is not recorded."""
    from .._printable import printable

    text = f"stackweave: this process is not recorded: {printable(str(error))}\n"
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace"))
