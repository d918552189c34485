"""Makes a Python program record that a recorded one has started, without a change of the program.

A recorder puts this folder first in PYTHONPATH. Any Python may import this file, of any version and
of another environment, so it uses only what all of them understand, and then imports the sitecustomize that would have
been imported without it.
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
    """Imports the package by its path: another environment may not have it."""
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
        from stackweave._recorders.subprocesses import record
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
