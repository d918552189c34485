"""Notifies when a module has been imported, without importing it."""

from __future__ import annotations

import contextlib
import sys
import threading
from importlib.abc import Loader
from typing import TYPE_CHECKING, Any

from .._native import ImportFinder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class ImportWatch:
    """Calls a function once when a module is imported: immediately if it is already, otherwise after its import.

    The function must not raise: it is called in the middle of an import statement.
    """

    def __init__(self, name: str, imported: Callable[[], None]) -> None:
        self._name = name
        self._imported = imported
        self._lock = threading.Lock()
        self._has_started = False
        self._is_wanted = False
        self._finding = threading.local()
        self._finder: ImportFinder | None = None

    def start(self) -> None:
        """Starts to watch. A second call changes nothing."""
        with self._lock:
            if self._has_started:
                return
            self._has_started = self._is_wanted = True
        self._finder = ImportFinder(self._name, self._find_spec)
        sys.meta_path.insert(0, self._finder)
        # Another thread may have begun to import it before the finder was added.
        if _is_imported(self._name):
            self.loaded()

    def stop(self) -> None:
        """Stops watching. It may be called from the function itself, and a second time."""
        self._is_wanted = False
        finder, self._finder = self._finder, None
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(finder)  # type: ignore[arg-type]

    def loaded(self) -> None:
        with self._lock:
            is_first, self._is_wanted = self._is_wanted, False
        if is_first:
            self.stop()
            self._imported()

    def _find_spec(self, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        """Returns the spec of the other finders, with a loader that notifies when it has loaded the module."""
        if getattr(self._finding, "now", False):
            return None
        self._finding.now = True
        try:
            spec = self._found_by_others(path, target)
        finally:
            self._finding.now = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Watched(spec.loader, self)
        return spec

    def _found_by_others(self, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = None if finder is self._finder else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(self._name, path, target)
            if spec is not None:
                return spec
        return None


class _Watched(Loader):
    """A loader that notifies when it has loaded. The module keeps its own loader."""

    def __init__(self, loader: Any, watch: ImportWatch) -> None:
        self._loader = loader
        self._watch = watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._watch.loaded()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _is_imported(name: str) -> bool:
    """Returns whether the module is imported. Waits if another thread is importing it."""
    if name not in sys.modules:
        return False
    try:
        __import__(name)
    except ImportError:
        return False
    return True
