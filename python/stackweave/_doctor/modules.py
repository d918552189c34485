"""Checks the native modules of this process for unwind tables, names and lines."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._location import FOLDER
from .debug_files import debug_file_of, remedies
from .elf import Elf
from .elf import read as read_elf
from .findings import Finding, examine, note, ok

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .findings import Section

#: The most names in a line.
SHOWN = 6


@dataclass(frozen=True)
class Module:
    path: str
    elf: Elf

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def section() -> Section:
    modules: list[Module] = []

    def native_modules() -> Iterator[Finding]:
        modules.extend(_modules())
        return iter(())

    return examine(
        "Native modules",
        (native_modules, lambda: _unwind_tables(modules), lambda: _debug_information(modules), _debuginfod),
    )


def _modules() -> Iterator[Module]:
    for path in mapped_files():
        if path.startswith(FOLDER):
            continue
        try:
            yield Module(path, read_elf(path))
        except (OSError, ValueError):
            continue


def mapped_files() -> list[str]:
    """Returns the files of mapped code, in the order of their addresses."""
    paths: dict[str, None] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                paths[fields[5]] = None
    return [path for path in paths if not path.endswith(" (deleted)")]


def _unwind_tables(modules: list[Module]) -> Iterator[Finding]:
    lacking = [module for module in modules if not module.elf.has_unwind_tables]
    if lacking:
        yield note(
            f"{_names(lacking)} {_have(lacking)} no unwind tables: native stacks may end there",
            "build with -fasynchronous-unwind-tables, or at least with -fno-omit-frame-pointer",
            modules=[module.path for module in lacking],
        )
    else:
        yield ok(f"all {len(modules)} modules have unwind tables", modules=len(modules))


def _debug_information(modules: list[Module]) -> Iterator[Finding]:
    lacking = [module for module in modules if not has_lines(module)]
    whole = len(modules) - len(lacking)
    if not lacking:
        yield ok(f"all {whole} modules have debug information: native frames have files, lines and inlined calls")
        return
    if whole:
        yield ok(f"{whole} of {len(modules)} modules have debug information: files, lines and inlined calls")
    named = [module for module in lacking if module.elf.has_symbols]
    exported = [module for module in lacking if not module.elf.has_symbols and module.elf.has_exported_symbols]
    nameless = [module for module in lacking if module not in named and module not in exported]
    for group, what in (
        (named, "symbol names only"),
        (exported, "only the names of the functions they export; others may show a neighbour's name"),
        (nameless, "not even names"),
    ):
        if group:
            yield note(f"no debug information, {what}: {_names(group)}", modules=_described(group))
    for remedy in remedies([module.path for module in lacking]):
        yield note(remedy.what, remedy.how)


def has_lines(module: Module) -> bool:
    return module.elf.has_debug_information or debug_file_of(module.path, module.elf) is not None


def _debuginfod() -> Iterator[Finding]:
    servers = os.environ.get("DEBUGINFOD_URLS", "").split()
    if servers:
        yield ok(f"missing debug information is fetched from {' '.join(servers)}", debuginfod=servers)


def _described(modules: Iterable[Module]) -> list[dict[str, str | None]]:
    return [{"path": module.path, "build_id": module.elf.build_id} for module in modules]


def _names(modules: list[Module]) -> str:
    names = ", ".join(module.name for module in modules[:SHOWN])
    more = len(modules) - SHOWN
    return f"{names} and {more} more" if more > 0 else names


def _have(modules: list[Module]) -> str:
    return "has" if len(modules) == 1 else "have"
