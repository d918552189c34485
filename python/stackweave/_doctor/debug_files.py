"""Finds the debug information of modules, and how to install what is missing on this system."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .elf import Elf

DEBUG_FOLDER = "/usr/lib/debug"
#: A server that queries those of all distributions.
SERVER = "https://debuginfod.elfutils.org"


class Remedy(NamedTuple):
    what: str
    how: str | None


def debug_file_of(path: str, elf: Elf) -> str | None:
    """Returns the file with the debug information of a module, if one is installed or was fetched."""
    places = []
    if elf.build_id:
        first, rest = elf.build_id[:2], elf.build_id[2:]
        places.append(os.path.join(DEBUG_FOLDER, ".build-id", first, f"{rest}.debug"))
        places.append(os.path.join(_cache_folder(), elf.build_id, "debuginfo"))
    if elf.debug_link:
        folder = os.path.dirname(os.path.realpath(path))
        places.append(os.path.join(folder, elf.debug_link))
        places.append(os.path.join(folder, ".debug", elf.debug_link))
        places.append(f"{DEBUG_FOLDER}{folder}/{elf.debug_link}")
    return next((place for place in places if os.path.isfile(place) and os.path.getsize(place) > 0), None)


def _cache_folder() -> str:
    """Returns the cache folder of elfutils."""
    if folder := os.environ.get("DEBUGINFOD_CACHE_PATH"):
        return folder
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "debuginfod_client")


def remedies(paths: list[str]) -> Iterator[Remedy]:
    """Returns how to get debug information for these modules, by their origin."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(_origin(path), []).append(path)
    if "system" in groups:
        yield _of_system(groups["system"])
    if "python" in groups:
        yield _of_python()
    if "conda" in groups:
        yield Remedy(
            "conda's packages have no debug information",
            "build what matters from source with CFLAGS=-g, or use your distribution's Python",
        )
    if "wheel" in groups:
        names = sorted({_package(path) for path in groups["wheel"]})
        yield Remedy(
            f"wheels have no debug information: {', '.join(names)}",
            "only a build from source with CFLAGS=-g has it",
        )


def _origin(path: str) -> str:
    real = os.path.realpath(path)
    if "/site-packages/" in path or "/dist-packages/" in path:
        return "wheel" if not real.startswith("/usr/lib/python3/") else "system"
    if os.path.isdir(os.path.join(sys.base_prefix, "conda-meta")) and real.startswith(sys.base_prefix + "/"):
        return "conda"
    prefix = os.path.realpath(sys.base_prefix)
    if prefix not in ("/usr", "/") and real.startswith(prefix + "/"):
        return "python"
    return "system"


def _package(path: str) -> str:
    folder = (
        path.rpartition("/site-packages/")[2] if "/site-packages/" in path else path.rpartition("/dist-packages/")[2]
    )
    name = folder.split("/")[0]
    return name.removesuffix(".libs").split(".")[0]


def _of_python() -> Remedy:
    version = ".".join(map(str, sys.version_info[:3]))
    if "/versions/" in sys.base_prefix and "pyenv" in sys.base_prefix:
        return Remedy(
            "this Python was built by pyenv, without debug information or stripped",
            f"PYTHON_CFLAGS=-g pyenv install --force {version}",
        )
    return Remedy(
        f"this Python, in {sys.base_prefix}, has no debug information", "build it with CFLAGS=-g, and do not strip it"
    )


def _of_system(paths: list[str]) -> Remedy:
    identity = _distribution()
    fetch = f"export DEBUGINFOD_URLS={SERVER}"
    packages = _packages_of(paths, identity)
    if "debian" in identity or "ubuntu" in identity:
        debug = sorted(filter(None, map(_debug_package, packages)))
        command = f"sudo apt install {' '.join(dict.fromkeys(debug))}" if debug else f"find-dbgsym-packages {paths[0]}"
    elif {"fedora", "rhel", "centos"} & set(identity):
        command = "sudo dnf debuginfo-install " + " ".join(packages or ["glibc", "python3"])
    elif {"suse", "opensuse"} & set(identity):
        command = "sudo zypper install " + " ".join(f"{package}-debuginfo" for package in packages or ["glibc"])
    else:
        command = ""
    owners = f" ({', '.join(packages)})" if packages else ""
    return Remedy(
        f"debug information of the system's modules{owners} can be fetched when it is needed, or installed",
        f"{fetch}{f'   or   {command}' if command else ''}",
    )


def _debug_package(package: str) -> str | None:
    """Returns the debug package of a package if Debian has it in its main archive; others are in a separate archive."""
    if package == "libc6":
        return "libc6-dbg"
    python = re.fullmatch(r"(?:lib)?(python3\.\d+).*", package)
    return f"{python[1]}-dbg" if python else None


def _distribution() -> list[str]:
    """Returns the ID of the distribution, and of those that it is derived from."""
    values = {}
    for place in ("/etc/os-release", "/usr/lib/os-release"):
        if os.path.exists(place):
            with open(place, encoding="utf-8") as file:
                values = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line and line[0] != "#")
            break
    words = [word for name in ("ID", "ID_LIKE") for word in shlex.split(values.get(name, ""))]
    words = [part for word in words for part in word.split()]
    return [word.split("-")[0] if word.startswith("opensuse") else word for word in words]


def _packages_of(paths: list[str], identity: list[str]) -> list[str]:
    """Returns the packages of modules, where the system knows them."""
    real = sorted({os.path.realpath(path) for path in paths})
    if shutil.which("dpkg-query"):
        # The database may have the path from before /lib became a link.
        moved = [path.removeprefix("/usr") for path in real if path.startswith("/usr/lib")]
        lines = _output(["dpkg-query", "--search", *real, *moved])
        return sorted({line.split(":")[0] for line in lines if ": " in line and not line.startswith("diversion")})
    if shutil.which("rpm"):
        lines = _output(["rpm", "--query", "--queryformat", "%{NAME}\n", "--file", *real])
        return sorted({line for line in lines if " " not in line})
    return []


def _output(command: list[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()
