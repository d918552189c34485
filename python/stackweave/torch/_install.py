"""Replaces functions of torch by ours, and restores them.

symbolize_tracebacks is not restored: it knows objects of both kinds, and calls torch's function for torch's objects.
Torch's own function would crash on the objects that were captured in between.
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

#: The methods of CapturedTraceback. Many modules refer to the class, so it stays, and its methods are replaced.
_METHODS = {
    "extract": staticmethod(_captured_traceback.extract),
    "summary": _captured_traceback.summary,
    "format_all": staticmethod(_captured_traceback.format_all),
}
#: The module of Dynamo with the files whose functions it does not compile.
_TRACE_RULES = "torch._dynamo.trace_rules"


class _Installation:
    """The state of the replacements."""

    def __init__(self) -> None:
        self.torch: Torch | None = None
        #: Whether install() was called, and how many with blocks run: either keeps the replacements.
        self.is_requested = False
        self.blocks = 0
        self._methods: dict[str, Any] = {}
        self.is_in = False

    def change(self) -> None:
        """Replaces the functions, or restores them, as is needed now. The lock is held."""
        is_wanted = self.is_requested or self.blocks > 0
        if is_wanted and not self.is_in:
            self._replace()
        elif not is_wanted and self.is_in:
            self._restore()

    def _replace(self) -> None:
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

    def _restore(self) -> None:
        assert self.torch is not None
        torch = self.torch
        for name, before in self._methods.items():
            # Other code may have replaced ours by a function that calls ours, which must still work.
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
    """Replaces the lock in a forked child, where the thread that holds it does not exist."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forget_lock)


def install() -> None:
    """Makes stackweave capture and show torch's tracebacks, until uninstall() is called. A second call changes nothing.

    >>> stackweave.torch.install()  # doctest: +SKIP

    Imports torch.
    """
    _prepare()
    with _lock:
        was_requested, _installation.is_requested = _installation.is_requested, True
        try:
            _installation.change()
        except BaseException:
            _installation.is_requested = was_requested
            raise


def uninstall() -> None:
    """Restores torch's functions; inside of installed(), when that ends. Without install(), it changes nothing.

    >>> stackweave.torch.uninstall()

    Tracebacks that were captured before can still be shown.
    """
    with _lock:
        _installation.is_requested = False
        _installation.change()


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Calls install() for a with block. Blocks can be nested, and run on several threads: the last to end uninstalls.

    >>> with stackweave.torch.installed():  # doctest: +SKIP
    ...     main()
    """
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
    """Returns whether stackweave captures torch's tracebacks now.

    >>> stackweave.torch.is_installed()
    False
    """
    return _installation.is_in


def _prepare() -> None:
    try:
        importlib.import_module("torch.utils._traceback")
    except ImportError as error:
        raise StackweaveError(f"torch can't be imported, so there is nothing to install in: {error}") from error
    _dynamo.start()


def _find_torch() -> Torch:
    """Returns the functions of torch, which is imported."""
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
    """Replaces functions in every module, under any name: many modules import them by name."""
    by_id = {id(before): after for before, after in replaced.items()}
    for module in list(sys.modules.values()):
        # An object in sys.modules that is no module may invent attributes, and a lazy module would be loaded.
        if not issubclass(type(module), types.ModuleType):
            continue
        names = object.__getattribute__(module, "__dict__")
        if type(names) is not dict or names is _captured_traceback.__dict__:
            continue
        found = [(name, by_id[id(value)]) for name, value in list(names.items()) if id(value) in by_id]
        for name, after in found:
            names[name] = after


def _leave_uncompiled() -> None:
    """Makes Dynamo neither trace nor compile our functions, like torch's own."""
    rules = sys.modules.get(_TRACE_RULES)
    files = getattr(rules, "FORCE_SKIP_FILES", None)
    if isinstance(files, set):
        files.update((_captured_traceback.__file__, _torchscript_frames.__file__))
    elif rules is not None:
        # This runs during an import of the program. At worst our functions are traced.
        with contextlib.suppress(Exception):
            rules.add(__package__)


_dynamo = ImportWatch(_TRACE_RULES, _leave_uncompiled)

for _public in (install, uninstall, installed, is_installed):
    _public.__module__ = "stackweave.torch"
