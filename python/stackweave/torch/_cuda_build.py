"""Builds what tells us of CUDA's memory: a small library in C++, against the torch that is there, once."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

from .._native import StackweaveError
from ._cuda_headers import cuda_include

_HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(_HERE, "cuda_events.cpp")
HEADERS = ("cuda_hook.hpp", "cuda_versions.hpp")
#: Headers of CUDA's compiler that the packages of its runtime lack.
STAND_IN = os.path.join(_HERE, "crt_stand_in")
#: Where stackweave.h is.
INCLUDE = os.path.join(os.path.dirname(_HERE), "include")
#: The library itself, for those who have built it.
PREBUILT = "STACKWEAVE_CUDA_LIBRARY"
CACHE = "STACKWEAVE_CACHE"
COMPILERS = ("c++", "g++", "clang++")
#: What newer headers of torch need, and what older compilers know.
STANDARDS = ("c++20", "c++17")


def built_library(torch: Any) -> str:
    """The file of the library for this torch. It is built if it was not before, and that is said."""
    prebuilt = os.environ.get(PREBUILT)
    if prebuilt:
        if not os.path.isfile(prebuilt):
            raise StackweaveError(f"{PREBUILT} names a library that is not there: {prebuilt}")
        return prebuilt
    compiler = find_compiler()
    folder = cache_folder()
    torch_folder = os.path.dirname(os.path.abspath(torch.__file__))
    name = f"cuda-events-{_digest(torch.__version__, torch_folder, *_sources())}"
    path = os.path.join(folder, f"{name}-{_digest(*compiler)}.so")
    if os.path.isfile(path):
        return path
    if not compiler:
        known = sorted(glob.glob(os.path.join(glob.escape(folder), f"{name}-*.so")))
        if known:
            return known[0]
        raise StackweaveError(
            "recording CUDA's memory needs a C++ compiler once, and none was found: "
            "install one (the package g++ or clang), or name it in the environment variable CXX"
        )
    return _build(torch, torch_folder, compiler, path)


def find_compiler() -> list[str]:
    """As a command and its first arguments. Nothing if there is none."""
    asked = shlex.split(os.environ.get("CXX", ""))
    if asked:
        if shutil.which(asked[0]) is None:
            raise StackweaveError(f"the compiler that the environment variable CXX names is not there: {asked[0]}")
        return asked
    return next(([found] for found in map(shutil.which, COMPILERS) if found), [])


def cache_folder() -> str:
    """Where it is kept. Made if it is not there; a temporary one if that can't be."""
    asked = os.environ.get(CACHE)
    if not asked:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        asked = os.path.join(root, "stackweave")
    try:
        os.makedirs(asked, mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=asked):
            return asked
    except OSError:
        return tempfile.mkdtemp(prefix="stackweave-")


def command_of(torch: Any, compiler: list[str], standard: str, output: str) -> list[str]:
    """How the compiler is called."""
    folder = os.path.dirname(os.path.abspath(torch.__file__))
    libraries = os.path.join(folder, "lib")
    abi = int(getattr(torch, "compiled_with_cxx11_abi", lambda: True)())
    return [
        *compiler,
        f"-std={standard}",
        # Stacks begin with the caller of the hook: that must not be left for what it calls last.
        *("-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-optimize-sibling-calls"),
        f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
        f"-I{INCLUDE}",
        *("-isystem", os.path.join(folder, "include")),
        *("-isystem", cuda_include(folder, torch.version.cuda)),
        *("-idirafter", STAND_IN),
        SOURCE,
        *("-o", output, f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lc10_cuda", "-lc10", "-pthread"),
    ]


def _build(torch: Any, torch_folder: str, compiler: list[str], path: str) -> str:
    if not os.path.isfile(os.path.join(torch_folder, "include", "c10", "cuda", "CUDACachingAllocator.h")):
        raise StackweaveError(f"this torch has no headers of C++ in {torch_folder}: install the whole package")
    # Many processes may do this at once. Each writes a file of its own, and the last one stays.
    unfinished = f"{path}.{os.getpid()}"
    commands = [command_of(torch, compiler, standard, unfinished) for standard in STANDARDS]
    name = os.path.basename(compiler[0])
    print(f"stackweave: {name} builds the CUDA hook for torch {torch.__version__}, once", file=sys.stderr)
    began = time.monotonic()
    try:
        failures = []
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=_plain_words())
            if done.returncode == 0:
                os.replace(unfinished, path)
                print(f"stackweave: it took {time.monotonic() - began:.1f} s, and is kept as {path}", file=sys.stderr)
                return path
            failures.append(f"$ {shlex.join(command)}\n{done.stdout}{done.stderr}")
    except OSError as error:
        raise StackweaveError(f"{name} can't build the CUDA hook: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
    raise _failure(name, failures, path.removesuffix(".so") + ".log")


def _failure(compiler: str, failures: list[str], log: str) -> StackweaveError:
    lines = [line for text in failures for line in text.splitlines()]
    first = next((line for line in lines if "error" in line and not line.startswith("$ ")), "it did not say why")
    try:
        with open(log, "w") as file:
            file.write("\n".join(failures))
        kept = f"all it said is in {log}"
    except OSError:
        kept = "what else it said could not be kept"
    return StackweaveError(f"{compiler} can't build the CUDA hook for this torch: {first.strip()} ({kept})")


def _plain_words() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _sources() -> list[bytes]:
    headers = [os.path.join(_HERE, name) for name in HEADERS]
    files = [SOURCE, *headers, os.path.join(INCLUDE, "stackweave.h")]
    found = []
    for file in files:
        try:
            with open(file, "rb") as opened:
                found.append(opened.read())
        except OSError:
            raise StackweaveError(f"a file of this package is missing: {file}") from None
    return found


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        text = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(text)}:".encode() + text)
    return digest.hexdigest()[:16]
