"""Where the library for CUDA's memory is kept, and whether code may be loaded from there."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile

from ._say import say

CACHE = "STACKWEAVE_CACHE"
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: The folder for this process alone, if there is no other, and the process that made it.
_temporary: list[tuple[str, int]] = []


def cache_folder() -> str:
    """Returns the folder that libraries are kept in. It may not be there, and may not be one to trust."""
    asked = os.environ.get(CACHE)
    if asked:
        return asked
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "stackweave")


def distrust(path: str) -> str | None:
    """Returns why somebody else may have put what is at this path there, or None.

    Symbolic links are followed first. Whoever may write to one of the folders above may have replaced what is in them.
    """
    if not os.path.isabs(path):
        return f"{path} is not an absolute path"
    resolved = here = os.path.realpath(path)
    while True:
        found = os.stat(here)
        if found.st_uid not in (os.geteuid(), 0):
            return f"{here} belongs to another user"
        # In a sticky folder, as /tmp is, nobody can replace what belongs to others.
        is_sticky = here != resolved and bool(found.st_mode & stat.S_ISVTX)
        if found.st_mode & WRITABLE_BY_OTHERS and not is_sticky:
            return f"{here} can be written by other users"
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def trusted(path: str) -> bool:
    """Returns whether code may be loaded from this file. If not, a sentence says why."""
    try:
        why = distrust(path)
    except OSError as error:
        why = str(error)
    if why is not None:
        say(f"the CUDA hook in {path} is not loaded: {why}")
    return why is None


def folders() -> list[str]:
    """Returns the folders that may have a library."""
    asked = cache_folder()
    return [*([asked] if os.path.isabs(asked) else []), *(folder for folder, _ in _temporary)]


def writable_folder() -> str:
    """Returns the cache, made if it is not there; a folder that goes with this process if it can't be used."""
    asked = cache_folder()
    try:
        why = None if os.path.isabs(asked) else f"{asked} is not an absolute path"
        if why is None:
            os.makedirs(asked, mode=0o700, exist_ok=True)
            why = distrust(asked)
        if why is None:
            with tempfile.TemporaryFile(dir=asked):
                return asked
        say(f"the CUDA hook is not kept: {why}")
    except OSError:
        pass
    made = tempfile.mkdtemp(prefix="stackweave-")
    if not _temporary:
        atexit.register(_remove_temporary)
    _temporary.append((made, os.getpid()))
    return made


def _remove_temporary() -> None:
    for folder, process in _temporary:
        # A forked child ends while its parent may need it.
        if process == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)
