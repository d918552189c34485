"""Finds the headers of CUDA that torch's own include."""

from __future__ import annotations

import glob
import os
import re
import shutil
from typing import TYPE_CHECKING

from ..._native import StartError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A header that each include folder of CUDA has.
_HEADER = "cuda_runtime_api.h"


def cuda_include(torch_folder: str, version: str) -> str:
    """Returns the folder with the headers of this version of CUDA, or of another version if there is none."""
    found = [
        folder for folder in dict.fromkeys(_folders(torch_folder)) if os.path.isfile(os.path.join(folder, _HEADER))
    ]
    if not found:
        raise StartError(
            f"recording CUDA's memory needs the headers of CUDA {version}, and none were found: name the folder of the "
            "CUDA toolkit in the environment variable CUDA_HOME, or install the package nvidia-cuda-runtime"
        )
    major = int(version.split(".")[0])
    return next((folder for folder in found if _major(folder) == major), found[0])


def _folders(torch_folder: str) -> Iterator[str]:
    """Yields the folders that may contain the headers, the most likely first."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        root = os.environ.get(name)
        if root:
            yield from _of_toolkit(root)
    # Packages that were installed with torch: one for all of CUDA since 13, one for each library before.
    packages = os.path.join(os.path.dirname(torch_folder), "nvidia")
    yield from sorted(glob.glob(os.path.join(glob.escape(packages), "cu[0-9]*", "include")), reverse=True)
    yield os.path.join(packages, "cuda_runtime", "include")
    compiler = shutil.which("nvcc")
    if compiler:
        yield from _of_toolkit(os.path.dirname(os.path.dirname(os.path.realpath(compiler))))
    prefix = os.environ.get("CONDA_PREFIX")
    if prefix:
        yield from _of_toolkit(prefix)
    yield from _of_toolkit("/usr/local/cuda")
    for root in sorted(glob.glob("/usr/local/cuda-*"), reverse=True):
        yield from _of_toolkit(root)
    yield "/usr/include"


def _of_toolkit(root: str) -> Iterator[str]:
    yield os.path.join(root, "include")
    yield from sorted(glob.glob(os.path.join(glob.escape(root), "targets", "*", "include")))


def _major(folder: str) -> int | None:
    try:
        with open(os.path.join(folder, _HEADER), errors="replace") as file:
            match = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", file.read())
    except OSError:
        return None
    return int(match[1]) // 1000 if match else None
