"""Finds other tools in this process: profilers, debuggers, allocators, unusual interpreters."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
import sysconfig
from typing import TYPE_CHECKING

from .findings import Finding, examine, note, ok
from .modules import mapped_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .findings import Section

#: Prefixes of file names, and the allocators.
ALLOCATORS = {"libjemalloc": "jemalloc", "libtcmalloc": "tcmalloc", "libmimalloc": "mimalloc"}
#: Modules that observe a program, and the tools.
WATCHERS = {
    "coverage": "coverage",
    "debugpy": "the debugger debugpy",
    "pydevd": "the debugger pydevd",
    "viztracer": "viztracer",
    "memray": "memray",
    "yappi": "yappi",
}


def section() -> Section:
    checks = (
        _profile_functions,
        _monitoring_tools,
        _watchers,
        _allocators,
        _python_malloc,
        _interpreter,
        _greenlets,
        _torch,
    )
    found = examine("Other tools", checks)
    if all(finding.state == "ok" for finding in found.findings):
        found.findings.insert(0, ok("no other profiler, debugger or allocator is active here"))
    return found


def _profile_functions() -> Iterator[Finding]:
    for name, function in (("sys.setprofile", sys.getprofile()), ("sys.settrace", sys.gettrace())):
        if function is not None:
            shown = getattr(function, "__qualname__", None) or type(function).__name__
            yield note(
                f"{name} is in use, by {shown}: it slows down every call, and is recorded as part of the program",
                "end that tool before you record",
                function=shown,
            )


def _monitoring_tools() -> Iterator[Finding]:
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return
    tools = {number: name for number in range(6) if (name := monitoring.get_tool(number)) is not None}
    if tools:
        shown = ", ".join(f"{name} ({number})" for number, name in tools.items())
        yield note(
            f"sys.monitoring is in use by {shown}", "both can be on, but each costs time", tools=list(tools.values())
        )


def _watchers() -> Iterator[Finding]:
    loaded = [tool for module, tool in WATCHERS.items() if module in sys.modules]
    if loaded:
        yield note(f"{', '.join(loaded)} is loaded", "what it does is recorded as part of the program", loaded=loaded)


def _allocators() -> Iterator[Finding]:
    files = [os.path.basename(path) for path in mapped_files()]
    loaded = [name for prefix, name in ALLOCATORS.items() if any(file.startswith(prefix) for file in files)]
    if loaded:
        yield note(
            f"{', '.join(loaded)} replaces the C library's allocator: it is recorded in the same way",
            allocators=loaded,
        )
    if preloaded := os.environ.get("LD_PRELOAD", "").strip():
        yield note(f"LD_PRELOAD is set: {preloaded}", preloaded=preloaded)


def _python_malloc() -> Iterator[Finding]:
    value = os.environ.get("PYTHONMALLOC", "")
    if value in ("", "default", "pymalloc", "mimalloc"):
        return
    if value.startswith("malloc"):
        what = "each Python object is a block of malloc: memory recordings have them all, and are larger"
    else:
        what = "every block is checked, which costs time and memory"
    yield note(f"PYTHONMALLOC={value}: {what}", "unset it unless you need it", pythonmalloc=value)


def _interpreter() -> Iterator[Finding]:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield note(
            "this is a free-threaded Python",
            "use the build with the GIL for captures at full speed",
            free_threaded=True,
        )
    if hasattr(sys, "gettotalrefcount"):
        yield note("this is a debug build of Python, which is slow by itself", debug_build=True)
    jit = getattr(sys, "_jit", None)
    if jit is not None and jit.is_enabled():
        yield note("Python's JIT is on: stacks are woven through its code, whose native frames have no names", jit=True)
    if platform.python_implementation() != "CPython":
        yield note(f"this is {platform.python_implementation()}, and not CPython")


def _greenlets() -> Iterator[Finding]:
    installed = [name for name in ("gevent", "eventlet", "greenlet") if importlib.util.find_spec(name) is not None]
    if installed:
        versions = ", ".join(f"{name} {_version(name)}" for name in installed)
        yield ok(f"{versions}: calls of greenlets are kept apart", greenlets=installed)


def _torch() -> Iterator[Finding]:
    if importlib.util.find_spec("torch") is not None:
        yield ok(
            f"torch {_version('torch')} is installed: stackweave.torch records its compilations and modules",
            torch=_version("torch"),
        )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
