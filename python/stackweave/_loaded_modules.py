"""Gives a program the same loaded modules at its start as a plain run.

The recorders import modules of the standard library that a plain interpreter has not loaded by then. The program may
have modules with the same names beside its script, and imports those in a plain run. So the names are removed from
sys.modules before the program starts. The modules of this package keep what they have imported.

From 3.15 on imports can be lazy: a module is imported when it is first used. That may be after the program has
started, and then its own module would be found. So the recorders are imported eagerly, with all that they import.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import ModuleType

_PACKAGE = __name__.partition(".")[0]
#: Modules that are hooked for the program: it must use the same ones.
_SHARED = frozenset({"logging", "threading"})


#: The removed modules, so that they are not freed: the interpreter may keep pointers into them.
_unloaded: list[ModuleType] = []


def import_eagerly() -> None:
    """Makes all imports eager until the program's modules can be imported. It is called before other imports."""
    if sys.version_info >= (3, 15):
        global _lazy_filter
        _lazy_filter = sys.get_lazy_imports_filter()
        sys.set_lazy_imports_filter(_never)


def _never(*_of_import: object) -> bool:
    return False


#: The filter that was set before, which decides whether an import may be lazy.
_lazy_filter: Callable[..., bool] | None = None


def names_at_start() -> frozenset[str]:
    """Returns the modules that the interpreter had loaded when it began to run this command.

    sys.modules has them in the order in which their imports have ended, and `site` is the last that the interpreter
    imports by itself.
    """
    names = list(sys.modules)
    last = "__main__" if sys.flags.no_site or "site" not in sys.modules else "site"
    return frozenset(names[: names.index(last) + 1])


def unload(kept: Collection[str]) -> None:
    """Removes all names from sys.modules but the kept ones and our own. sys.path is that of the program already.

    Imports may be lazy again.
    """
    for name, module in list(sys.modules.items()):
        # Built-in modules are found before all others: the program can't replace them.
        if name in kept or name in sys.builtin_module_names or name.partition(".")[0] == _PACKAGE:
            continue
        if name not in _SHARED or _has_another(name, module):
            _unloaded.append(sys.modules.pop(name))
    if sys.version_info >= (3, 15) and sys.get_lazy_imports_filter() is _never:
        sys.set_lazy_imports_filter(_lazy_filter)


def with_shared(start: Callable[[], object]) -> None:
    """Starts a recorder, which imports the modules that it hooks. Any call after that would be recorded."""
    removed = [module for module in _unloaded if module.__name__ in _SHARED]
    of_program = [(module.__name__, sys.modules.get(module.__name__)) for module in removed]
    for module in removed:
        sys.modules[module.__name__] = module
    try:
        start()
    finally:
        for name, other in of_program:
            if other is None:
                del sys.modules[name]
            else:
                sys.modules[name] = other


def _has_another(name: str, module: ModuleType) -> bool:
    """Returns whether the program would import another module by this name."""
    found = sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name)
    return found is not None and found.origin != getattr(module.__spec__, "origin", None)
