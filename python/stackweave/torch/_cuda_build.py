"""Builds what tells us of CUDA's memory: a small library in C++, against the torch that is there, once."""

from __future__ import annotations

import glob
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from typing import Any

from .. import _native
from .._include import get_include
from .._native import StartError
from ._cuda_cache import folders, trusted, writable_folder
from ._cuda_headers import cuda_include
from ._say import say

_HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(_HERE, "cuda_events.cpp")
HEADERS = ("cuda_hook.hpp", "cuda_versions.hpp")
#: Headers of CUDA's compiler that the packages of its runtime lack.
STAND_IN = os.path.join(_HERE, "crt_stand_in")
#: The library itself, for those who have built it.
PREBUILT = "STACKWEAVE_CUDA_LIBRARY"
COMPILERS = ("c++", "g++", "clang++")
#: What newer headers of torch need, and what older compilers know.
STANDARDS = ("c++20", "c++17")


def built_library(torch: Any) -> str:
    """The file of the library for this torch. It is built if it was not before, and that is said."""
    prebuilt = os.environ.get(PREBUILT)
    if prebuilt:
        if not os.path.isfile(prebuilt):
            raise StartError(f"{PREBUILT} names a library that is not there: {prebuilt}")
        return prebuilt
    compiler = find_compiler()
    name = library_name(torch)
    file = f"{name}-{_digest(*compiler) if compiler else '*'}.so"
    known = sorted(path for folder in folders() for path in glob.glob(os.path.join(glob.escape(folder), file)))
    found = next(filter(trusted, known), None)
    if found:
        return found
    if not compiler:
        raise StartError(
            "recording CUDA's memory needs a C++ compiler once, and none was found: "
            "install one (the package g++ or clang), or name it in the environment variable CXX"
        )
    return _build(torch, compiler, file)


def library_name(torch: Any) -> str:
    """The same for what is built from the same, but for the compiler."""
    return f"cuda-events-{_digest(str(torch.__version__), _torch_folder(torch), *_sources())}"


def find_compiler() -> list[str]:
    """As a command and its first arguments. Nothing if there is none."""
    asked = shlex.split(os.environ.get("CXX", ""))
    if asked:
        if shutil.which(asked[0]) is None:
            raise StartError(f"the compiler that the environment variable CXX names is not there: {asked[0]}")
        return asked
    return next(([found] for found in map(shutil.which, COMPILERS) if found), [])


def command_of(torch: Any, compiler: list[str], standard: str, output: str) -> list[str]:
    """How the compiler is called."""
    folder = _torch_folder(torch)
    libraries = os.path.join(folder, "lib")
    abi = int(getattr(torch, "compiled_with_cxx11_abi", lambda: True)())
    return [
        *compiler,
        f"-std={standard}",
        # Stacks begin with the caller of the hook: that must not be left for what it calls last.
        *("-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-optimize-sibling-calls"),
        f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
        f'-DSTACKWEAVE_TORCH="{torch.__version__}"',
        f"-I{get_include()}",
        *("-isystem", os.path.join(folder, "include")),
        *("-isystem", cuda_include(folder, torch.version.cuda)),
        *("-idirafter", STAND_IN),
        SOURCE,
        *("-o", output, f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lc10_cuda", "-lc10", "-pthread"),
    ]


def _torch_folder(torch: Any) -> str:
    file: str = torch.__file__
    return os.path.dirname(os.path.abspath(file))


def _build(torch: Any, compiler: list[str], file: str) -> str:
    folder = _torch_folder(torch)
    if not os.path.isfile(os.path.join(folder, "include", "c10", "cuda", "CUDACachingAllocator.h")):
        raise StartError(f"this torch has no headers of C++ in {folder}: install the whole package")
    name = os.path.basename(compiler[0])
    began = time.monotonic()
    try:
        path = os.path.join(writable_folder(), file)
        # Many processes may do this at once, on many machines. Each has a folder of its own, and the last one stays.
        beside = os.path.dirname(path)
        with tempfile.TemporaryDirectory(prefix=f"{file}.", dir=beside, ignore_cleanup_errors=True) as unfinished:
            output = os.path.join(unfinished, file)
            commands = [command_of(torch, compiler, standard, output) for standard in STANDARDS]
            say(f"{name} builds the CUDA hook for torch {torch.__version__}, once")
            failures = []
            for command in commands:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=_plain_words())
                if done.returncode == 0:
                    _native.copy_to_output(output, path, overwrite=True)
                    # A file that it replaces may have had wider rights: what others can write is not loaded.
                    os.chmod(path, 0o700)
                    say(f"it took {time.monotonic() - began:.1f} s, and is kept as {path}")
                    return path
                failures.append(f"$ {shlex.join(command)}\n{done.stdout}{done.stderr}")
    except OSError as error:
        raise StartError(f"{name} can't build the CUDA hook: {error}") from None
    raise _failure(name, failures, path.removesuffix(".so") + ".log")


def _failure(compiler: str, failures: list[str], log: str) -> StartError:
    lines = [line for text in failures for line in text.splitlines()]
    first = next((line for line in lines if "error" in line and not line.startswith("$ ")), "it did not say why")
    try:
        _native.write_output(log, "\n".join(failures).encode("utf-8", "surrogateescape"), overwrite=True)
        kept = f"all it said is in {log}"
    except OSError:
        kept = "what else it said could not be kept"
    return StartError(f"{compiler} can't build the CUDA hook for this torch: {first.strip()} ({kept})")


def _plain_words() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _sources() -> list[bytes]:
    """All that a library is made of but torch: how the compiler is called is in this file."""
    headers = [os.path.join(_HERE, name) for name in HEADERS]
    stand_ins = sorted(glob.glob(os.path.join(glob.escape(STAND_IN), "**", "*.h"), recursive=True))
    files = [SOURCE, *headers, *stand_ins, os.path.join(get_include(), "stackweave.h"), __file__]
    found = []
    for file in files:
        try:
            with open(file, "rb") as opened:
                found.append(opened.read())
        except OSError:
            raise StartError(f"a file of this package is missing: {file}") from None
    return found


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        text = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(text)}:".encode() + text)
    return digest.hexdigest()[:16]
