"""Makes a Python program that a recording one has started record too, without being changed.

Whoever records puts this folder first in PYTHONPATH. Any Python may come here, of any version and from another
environment, so this file keeps to what all of them understand, and goes on to the sitecustomize that would have been
imported without it.
"""
# mypy: ignore-errors

import sys


def _go_on(folder):
    """Imports the sitecustomize that would have been imported without this one, and returns whether there is one."""
    sys.path[:] = [path for path in sys.path if path != folder]
    from importlib import machinery, util

    spec = machinery.PathFinder.find_spec(__name__, sys.path)
    if spec is not None and spec.loader is not None:
        module = sys.modules[__name__] = util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return spec is not None


def _package(folder):
    """The package, wherever it is: another environment may not have it."""
    try:
        import stackweave
    except ImportError:
        from importlib import util

        spec = util.spec_from_file_location("stackweave", folder + "/__init__.py", submodule_search_locations=[folder])
        stackweave = sys.modules["stackweave"] = util.module_from_spec(spec)
        try:
            spec.loader.exec_module(stackweave)
        except BaseException:
            del sys.modules["stackweave"]
            raise
    return stackweave


def _record(folder, kept):
    try:
        _package(folder)
        from stackweave._loaded_modules import import_eagerly, unload

        import_eagerly()
        from stackweave._subprocess import record
    except ImportError:
        return
    record()
    unload(kept)


if sys.version_info >= (3, 10):  # noqa: UP036
    _here = __file__.rpartition("/")[0]
    _kept = set(sys.modules)
    try:
        if _go_on(_here):
            _kept = set(sys.modules)
    finally:
        _record(_here.rpartition("/")[0], _kept)
