"""Puts stackweave behind torch's own names, and takes it out again.

One of ours stays when the rest is taken out: symbolize_tracebacks, which knows objects of both. Torch's own function
would crash on those that were captured meanwhile. It passes on what is torch's.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import types
from typing import TYPE_CHECKING, Any

from .._native import StackweaveError
from . import _captured_traceback, _torchscript_frames
from ._captured_traceback import Torch
from ._import_watch import ImportWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of this, a class that many modules have: so its methods are replaced, and it stays.
_METHODS = {
    "extract": staticmethod(_captured_traceback.extract),
    "summary": _captured_traceback.summary,
    "format_all": staticmethod(_captured_traceback.format_all),
}
#: Dynamo looks here for files whose functions it leaves alone.
_TRACE_RULES = "torch._dynamo.trace_rules"


class _Installation:
    """What is in torch's places."""

    def __init__(self) -> None:
        self.torch: Torch | None = None
        #: Whether install() was called, and how many with blocks run: either keeps it.
        self.is_asked = False
        self.blocks = 0
        self._methods: dict[str, Any] = {}
        self.is_in = False

    def change(self) -> None:
        """Puts ours in, or takes them out, as is wanted now. The lock is held."""
        is_wanted = self.is_asked or self.blocks > 0
        if is_wanted and not self.is_in:
            self._put_in()
        elif not is_wanted and self.is_in:
            self._take_out()

    def _put_in(self) -> None:
        if self.torch is None:
            self.torch = _find_torch()
            _captured_traceback.know(self.torch)
        torch = self.torch
        self.is_in = True
        _captured_traceback.switch(True)
        _replace_everywhere(
            {
                torch.gather: _captured_traceback.gather_traceback,
                torch.symbolize: _captured_traceback.symbolize_tracebacks,
                torch.addresses: _captured_traceback.symbolize_addresses,
            }
        )
        for name, ours in _METHODS.items():
            self._methods[name] = vars(torch.captured_traceback)[name]
            setattr(torch.captured_traceback, name, ours)

    def _take_out(self) -> None:
        assert self.torch is not None
        torch = self.torch
        for name, before in self._methods.items():
            # Somebody may have put something over ours, which calls ours: those go on to work.
            if vars(torch.captured_traceback)[name] is _METHODS[name]:
                setattr(torch.captured_traceback, name, before)
        self._methods.clear()
        _replace_everywhere(
            {
                _captured_traceback.gather_traceback: torch.gather,
                _captured_traceback.symbolize_addresses: torch.addresses,
            }
        )
        _captured_traceback.switch(False)
        self.is_in = False


_installation = _Installation()
#: Nothing is imported while it is held.
_lock = threading.RLock()


def _forget_lock() -> None:
    """In a forked child, where the thread that has it is not."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forget_lock)


def install() -> None:
    """Has torch's tracebacks captured and shown by stackweave, until uninstall() is called. Again, it changes nothing.

    Imports torch, if nobody has yet.
    """
    _prepare()
    with _lock:
        was_asked, _installation.is_asked = _installation.is_asked, True
        try:
            _installation.change()
        except BaseException:
            _installation.is_asked = was_asked
            raise


def uninstall() -> None:
    """Gives torch its own functions back; inside of installed(), when that ends. Without install(), it changes nothing.

    What was captured meanwhile can still be looked at.
    """
    with _lock:
        _installation.is_asked = False
        _installation.change()


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """install() for a with block. Blocks can be nested, and run on several threads: the last to end uninstalls."""
    _prepare()
    with _lock:
        _installation.blocks += 1
    try:
        with _lock:
            _installation.change()
        yield
    finally:
        with _lock:
            _installation.blocks -= 1
            _installation.change()


def is_installed() -> bool:
    """Whether torch's tracebacks are stackweave's now."""
    return _installation.is_in


def _prepare() -> None:
    try:
        importlib.import_module("torch.utils._traceback")
    except ImportError as error:
        raise StackweaveError(f"torch can't be imported, so there is nothing to install in: {error}") from error
    _dynamo.start()


def _find_torch() -> Torch:
    """What torch has in its places. It has been imported."""
    torch = sys.modules["torch"]
    try:
        current_node = getattr(torch._C, "_current_autograd_node", _no_node)
        captured_traceback = sys.modules["torch.utils._traceback"].CapturedTraceback
        for name in _METHODS:
            vars(captured_traceback)[name]
        return Torch(torch._C._profiler, captured_traceback, current_node)
    except (AttributeError, KeyError) as error:
        version = getattr(torch, "__version__", "")
        raise StackweaveError(
            f"torch {version} has no captured tracebacks as known here: {error} is missing"
        ) from error


def _no_node() -> None:
    return None


def _replace_everywhere(replaced: dict[Any, Any]) -> None:
    """In every module that has one of these under whatever name: many import functions by name."""
    by_id = {id(before): after for before, after in replaced.items()}
    for module in list(sys.modules.values()):
        # What is no module, as some put there, may make things up when it is asked. A lazy one would be loaded.
        if not issubclass(type(module), types.ModuleType):
            continue
        names = object.__getattribute__(module, "__dict__")
        if type(names) is not dict or names is _captured_traceback.__dict__:
            continue
        found = [(name, by_id[id(value)]) for name, value in list(names.items()) if id(value) in by_id]
        for name, after in found:
            names[name] = after


def _leave_uncompiled() -> None:
    """Has Dynamo neither trace nor compile our functions, as it does with torch's own."""
    rules = sys.modules.get(_TRACE_RULES)
    files = getattr(rules, "FORCE_SKIP_FILES", None)
    if isinstance(files, set):
        files.update((_captured_traceback.__file__, _torchscript_frames.__file__))
    elif rules is not None:
        # In the middle of the program's own import. At worst our functions are traced.
        with contextlib.suppress(Exception):
            rules.add(__package__)


_dynamo = ImportWatch(_TRACE_RULES, _leave_uncompiled)

for _public in (install, uninstall, installed, is_installed):
    _public.__module__ = "stackweave.torch"
