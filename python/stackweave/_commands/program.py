"""Runs a program in this process exactly as python runs script.py, -m module and -c code."""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple

from .. import _loaded_modules, _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.abc import PathEntryFinder

    _Begin = Callable[[], object]
    _Failed = Callable[[], bool]

STANDARD_INPUT = "-"


class Program(NamedTuple):
    kind: Literal["file", "module", "code"]
    #: The path, the name of the module, or the code.
    target: str
    arguments: list[str]

    @property
    def short_name(self) -> str:
        """The default name for files about it."""
        if self.kind == "module":
            return self.target
        if self.kind == "code":
            return "code"
        if self.target == STANDARD_INPUT:
            return "stdin"
        return os.path.splitext(os.path.basename(os.path.abspath(self.target)))[0] or "program"


def has_first_folder() -> bool:
    """Returns whether the interpreter has put the folder of the program first in sys.path."""
    return not getattr(sys.flags, "safe_path", sys.flags.isolated)


def complaint(program: Program) -> str | None:
    """Returns why a program can't be run, as far as that can be known before."""
    if program.kind == "code":
        return "the code is not text in the encoding of the file system" if _has_bytes(program.target) else None
    if program.kind == "module" or program.target == STANDARD_INPUT:
        return None
    path = _absolute(program.target)
    if os.path.isdir(path):
        return None
    try:
        with open(path, "rb"):
            return None
    except OSError as error:
        return f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}"


def _has_bytes(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def run(program: Program, begin: _Begin, failed: Callable[[], object]) -> int:
    """Runs a program and ends the process. Returns the exit status if Python continues interactively.

    begin is called when everything is ready, failed after an exception that was not handled: sys.last_value.
    """

    def has_failed() -> bool:
        """Returns whether it was interrupted. Before 3.14 the interpreter treats derived classes as failures."""
        failed()
        kind = getattr(sys, "last_type", None)
        if sys.version_info < (3, 14):
            return kind is KeyboardInterrupt
        return kind is not None and issubclass(kind, KeyboardInterrupt)

    run_kind = {"file": _run_file, "module": _run_module, "code": _run_code}[program.kind]
    return 0 if run_kind(program, begin, has_failed) else 1


def _run_file(program: Program, begin: _Begin, failed: _Failed) -> bool:
    path = program.target
    if path == STANDARD_INPUT:
        _enter(path, program.arguments, "")
        return _native.run_file(path, begin, failed)
    path = _absolute(path)
    importer = _importer(path)
    if importer is None:
        _enter(program.target, program.arguments, os.path.dirname(os.path.realpath(path)))
        return _native.run_file(path, begin, failed)
    _enter(program.target, program.arguments, None)
    sys.path.insert(0, path)  # a folder or archive of code, whatever the flags
    has_main = importer.find_spec("__main__") is not None
    return _run_main_of("__main__", False, begin if has_main else _do_nothing, failed)


def _run_module(program: Program, begin: _Begin, failed: _Failed) -> bool:
    _enter("-m", program.arguments, os.getcwd())
    return _run_main_of(program.target, True, begin, failed)


def _run_main_of(name: str, changes_arguments: bool, begin: _Begin, failed: _Failed) -> bool:
    import runpy

    if _is_missing(name):
        begin = _do_nothing  # runpy reports it, and there is nothing to record

    main: Callable[..., object] = runpy._run_module_as_main  # type: ignore[attr-defined]
    return _native.run_call(partial(main, name, changes_arguments), begin, failed)


def _is_missing(name: str) -> bool:
    """Returns whether a module is missing, as far as that is known without importing code of the program."""
    from importlib.util import find_spec

    try:
        return find_spec(name.partition(".")[0]) is None
    except (ImportError, ValueError):
        return False


def _do_nothing() -> None:
    pass


def _run_code(program: Program, begin: _Begin, failed: _Failed) -> bool:
    _enter("-c", program.arguments, "")
    source = program.target
    if sys.version_info >= (3, 14):
        import textwrap

        source = textwrap.dedent(source)
    compiled = partial(compile, source, "<string>", "exec", 0, True)
    code = None
    with contextlib.suppress(Exception):
        code = compiled()
    if code is None:
        return _native.run_call(compiled, begin, failed)  # fails again, without our frames in the traceback
    if sys.version_info >= (3, 13):
        _show_lines_of(code, source)
    return _native.run_code(code, sys.modules["__main__"].__dict__, begin, failed)


def _show_lines_of(code: object, source: str) -> None:
    """Makes tracebacks show the lines of the code, as Python does since 3.13."""
    import linecache

    key = code if hasattr(linecache, "_interactive_cache") else "<string>"
    register = getattr(linecache, "_register_code", None)
    if register is not None:
        register(key, source, "<string>")


def _enter(name: str, arguments: list[str], folder: str | None) -> None:
    """Sets arguments, paths and __main__ for the program. The caller has removed our own folder from sys.path."""
    sys.argv[:] = [name, *arguments]
    if folder is not None and has_first_folder():
        sys.path.insert(0, folder)
    _loaded_modules.unload(_loaded_modules.names_at_start())
    global _ours
    _ours = sys.modules["__main__"]
    main = ModuleType("__main__")
    main.__loader__ = sys.modules["_frozen_importlib"].BuiltinImporter
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main


#: The module that was __main__ before: code that still runs in it needs its names.
_ours: ModuleType | None = None


def _absolute(path: str) -> str:
    """Returns an absolute path without normalising it, as the interpreter does."""
    return os.path.join(os.getcwd(), path)


def _importer(path: str) -> PathEntryFinder | None:
    """Returns the finder for modules in a folder or an archive, or None for a file."""
    for hook in sys.path_hooks:
        try:
            return hook(path)  # type: ignore[return-value]
        except ImportError:
            continue
    return None
