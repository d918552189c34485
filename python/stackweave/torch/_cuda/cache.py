"""The cache for the CUDA hook, and whether code may be loaded from it."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile

from ..._messages import print_message

CACHE = "STACKWEAVE_CACHE"
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: The temporary folder of this process, if the cache can't be used, and the process that made it.
_temporary: list[tuple[str, int]] = []


def cache_folder() -> str:
    """Returns the folder for libraries. It may not exist, and may not be trusted."""
    given = os.environ.get(CACHE)
    if given:
        return given
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "stackweave")


def distrust(path: str) -> str | None:
    """Returns why another user may have written the file at this path, or None.

    Symbolic links are followed first. A user who can write to one of the parent folders may have replaced the file.
    """
    if not os.path.isabs(path):
        return f"{path} is not an absolute path"
    resolved = here = os.path.realpath(path)
    while True:
        found = os.stat(here)
        if found.st_uid not in (os.geteuid(), 0):
            return f"{here} belongs to another user"
        # In a sticky folder like /tmp, users can't replace the files of others.
        is_sticky = here != resolved and bool(found.st_mode & stat.S_ISVTX)
        if found.st_mode & WRITABLE_BY_OTHERS and not is_sticky:
            return f"{here} can be written by other users"
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def trusted(path: str) -> bool:
    """Returns whether code may be loaded from this file. If not, a message says why."""
    try:
        why = distrust(path)
    except OSError as error:
        why = str(error)
    if why is not None:
        print_message(f"the CUDA hook in {path} is not loaded: {why}")
    return why is None


def folders() -> list[str]:
    """Returns the folders that may contain a library."""
    cache = cache_folder()
    return [*([cache] if os.path.isabs(cache) else []), *(folder for folder, _ in _temporary)]


def writable_folder() -> str:
    """Returns the cache, which is created if needed; if it can't be used, a temporary folder of this process."""
    cache = cache_folder()
    try:
        why = None if os.path.isabs(cache) else f"{cache} is not an absolute path"
        if why is None:
            os.makedirs(cache, mode=0o700, exist_ok=True)
            why = distrust(cache)
        if why is None:
            with tempfile.TemporaryFile(dir=cache):
                return cache
        print_message(f"the CUDA hook is not kept: {why}")
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
