"""Reads from an ELF file: unwind tables, symbol names, debug information, build ID."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EH_FRAME_HEADER = 0x6474E550
_NOTE = 4
_BUILD_ID = 3
#: The type of a section without bytes in the file, as in a file of debug information.
_NO_BITS = 8


@dataclass(frozen=True)
class Elf:
    """A 64-bit ELF file."""

    has_unwind_tables: bool
    has_debug_information: bool
    #: Whether it has names of all functions, and not only of exported ones.
    has_symbols: bool
    has_exported_symbols: bool
    build_id: str | None
    #: The file name of its debug information.
    debug_link: str | None


def read(path: str) -> Elf:
    """Reads the file. Raises OSError or ValueError if it is no ELF file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:5] != b"\x7fELF\x02":
            raise ValueError(f"{path} is no 64-bit ELF file")
        try:
            return _read(data)
        except (struct.error, IndexError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error


def _read(data: mmap.mmap) -> Elf:
    segments, sections = list(_segments(data)), dict(_sections(data))
    names = {name for name, (kind, _, size) in sections.items() if kind != _NO_BITS and size > 0}
    notes = [(offset, size) for kind, offset, size in segments if kind == _NOTE]
    link = sections.get(".gnu_debuglink")
    return Elf(
        has_unwind_tables=any(kind == _EH_FRAME_HEADER for kind, _, _ in segments) or ".eh_frame" in names,
        has_debug_information=bool(names & {".debug_info", ".zdebug_info"}),
        has_symbols=".symtab" in names,
        has_exported_symbols=".dynsym" in names,
        build_id=next(filter(None, (_build_id(data, offset, size) for offset, size in notes)), None),
        debug_link=_text(data, link[1]) if link is not None else None,
    )


def _segments(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Returns type, offset and size of each."""
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for number in range(count):
        kind, _, place, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + number * size)
        yield kind, place, length


def _sections(data: mmap.mmap) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Returns the name with type, offset and size of each."""
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    if offset == 0 or count == 0:
        return
    headers = [struct.unpack_from("<IIQQQQ", data, offset + number * size) for number in range(count)]
    start = headers[names][4]
    for name, kind, _, _, place, length in headers:
        yield _text(data, start + name), (kind, place, length)


def _build_id(data: mmap.mmap, offset: int, size: int) -> str | None:
    end = min(offset + size, len(data))
    while offset + 12 <= end:
        name_size, length, kind = struct.unpack_from("<III", data, offset)
        name, described = offset + 12, offset + 12 + (name_size + 3) // 4 * 4
        if kind == _BUILD_ID and data[name : name + name_size] == b"GNU\0":
            return data[described : described + length].hex()
        offset = described + (length + 3) // 4 * 4
    return None


def _text(data: mmap.mmap, offset: int) -> str:
    end = data.find(b"\0", offset)
    return data[offset:end].decode("utf-8", "replace")
