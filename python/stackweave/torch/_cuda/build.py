"""Builds the hook in torch's CUDA allocator: a small C++ library, once for each installed torch."""

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

from ... import _native
from ..._include import get_include
from ..._location import FOLDER
from ..._messages import print_message
from ..._native import StartError
from .cache import folders, trusted, writable_folder
from .headers import cuda_include

_HERE = os.path.join(FOLDER, "torch")
SOURCE = os.path.join(_HERE, "cuda_events.cpp")
HEADERS = ("cuda_hook.hpp", "cuda_versions.hpp")
#: Headers of CUDA's compiler that the packages of CUDA's runtime lack.
STAND_IN = os.path.join(_HERE, "crt_stand_in")
#: The variable with the path of a library that was built before.
PREBUILT = "STACKWEAVE_CUDA_LIBRARY"
COMPILERS = ("c++", "g++", "clang++")
#: The standard that newer headers of torch need, and the one that older compilers support.
STANDARDS = ("c++20", "c++17")


def built_library(torch: Any) -> str:
    """Returns the file of the library for this torch. If it must be built, a message says so."""
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
    """Returns the name of the library without the part about the compiler. Equal sources have equal names."""
    return f"cuda-events-{_digest(str(torch.__version__), _torch_folder(torch), *_sources())}"


def find_compiler() -> list[str]:
    """Returns a command and its first arguments; an empty list if there is no compiler."""
    given = shlex.split(os.environ.get("CXX", ""))
    if given:
        if shutil.which(given[0]) is None:
            raise StartError(f"the compiler that the environment variable CXX names is not there: {given[0]}")
        return given
    return next(([found] for found in map(shutil.which, COMPILERS) if found), [])


def command_of(torch: Any, compiler: list[str], standard: str, output: str) -> list[str]:
    """Returns the command that builds the library."""
    folder = _torch_folder(torch)
    libraries = os.path.join(folder, "lib")
    abi = int(getattr(torch, "compiled_with_cxx11_abi", lambda: True)())
    return [
        *compiler,
        f"-std={standard}",
        # Stacks begin with the caller of the hook, so the hook must not be left by a sibling call.
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
        # Many processes may build at once, on many machines. Each has its own folder, and the last library stays.
        beside = os.path.dirname(path)
        with tempfile.TemporaryDirectory(prefix=f"{file}.", dir=beside, ignore_cleanup_errors=True) as unfinished:
            output = os.path.join(unfinished, file)
            commands = [command_of(torch, compiler, standard, output) for standard in STANDARDS]
            print_message(f"{name} builds the CUDA hook for torch {torch.__version__}, once")
            failures = []
            for command in commands:
                done = subprocess.run(
                    command, capture_output=True, text=True, errors="replace", env=_english_environment()
                )
                if done.returncode == 0:
                    _native.copy_to_output(output, path, overwrite=True)
                    # A replaced file may have had more permissions: a file that others can write is not loaded.
                    os.chmod(path, 0o700)
                    print_message(f"it took {time.monotonic() - began:.1f} s, and is kept as {path}")
                    return path
                failures.append(f"$ {shlex.join(command)}\n{done.stdout}{done.stderr}")
    except OSError as error:
        raise StartError(f"{name} can't build the CUDA hook: {error}") from None
    raise _failure(name, failures, path.removesuffix(".so") + ".log")


def _failure(compiler: str, failures: list[str], log: str) -> StartError:
    lines = [line for text in failures for line in text.splitlines()]
    first = next((line for line in lines if "error" in line and not line.startswith("$ ")), "it gave no reason")
    try:
        _native.write_output(log, "\n".join(failures).encode("utf-8", "surrogateescape"), overwrite=True)
        kept = f"its output is in {log}"
    except OSError:
        kept = "its output could not be written"
    return StartError(f"{compiler} can't build the CUDA hook for this torch: {first.strip()} ({kept})")


def _english_environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _sources() -> list[bytes]:
    """Returns everything that the library is built from but torch. The compiler's command is in this file."""
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
