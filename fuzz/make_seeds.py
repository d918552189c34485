"""Writes the seeds of `unwind_step`: small unwind tables of the shapes that compilers and assemblers emit.

Each seed is a byte for the mode (0: bare entries, 1: with `.eh_frame_hdr`), two for the address to step from
(section start + 16 * value), then the table. Run it from any folder; the seeds are checked in.
"""

import pathlib
import struct

SECTION = 0x100000
CODE = SECTION + 0x100
SEEDS = pathlib.Path(__file__).parent / "seeds" / "unwind_step"


def padded(body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<I", len(body)) + body


def cie(augmentation: bytes, data: bytes, instructions: bytes, version: int = 1) -> bytes:
    head = struct.pack("<IB", 0, version) + augmentation + b"\0"
    head += b"\x01\x78\x10"  # code alignment 1, data alignment -8, return address in column 16
    if augmentation.startswith(b"z"):
        head += bytes([len(data)]) + data
    return padded(head + instructions)


def fde(offset: int, cie_offset: int, encoding: int, instructions: bytes, augmented: bool) -> bytes:
    distance = offset + 4 - cie_offset
    start = CODE - (SECTION + offset + 8) if encoding == 0x1B else CODE
    pointers = struct.pack("<iI", start, 0x1000) if encoding == 0x1B else struct.pack("<QQ", start, 0x1000)
    return padded(struct.pack("<I", distance) + pointers + (b"\0" if augmented else b"") + instructions)


def table(instructions: bytes, encoding: int = 0x1B, signal: bool = False, initial: bytes = b"\x0c\x07\x08\x90\x01") -> bytes:
    if encoding == 0x1B:
        common = cie(b"zRS" if signal else b"zR", b"\x1b", initial)
    else:
        common = cie(b"", b"", initial)
    return common + fde(len(common), 0, encoding, instructions, encoding == 0x1B) + b"\0\0\0\0"


def with_header(entries: bytes) -> bytes:
    header_size = 12 + 8
    shifted = bytearray(entries)
    first = struct.unpack_from("<I", entries, 0)[0] + 4
    # The pc-relative starts move with the table.
    start = struct.unpack_from("<i", entries, first + 8)[0]
    struct.pack_into("<i", shifted, first + 8, start - header_size)
    header = b"\x01\x1b\x03\x3b" + struct.pack("<i", header_size - 4) + struct.pack("<I", 1)
    return header + struct.pack("<ii", CODE - SECTION, header_size + first) + bytes(shifted)


PROGRAMS = {
    "plain": b"\x0e\x30",
    "push_rbp": b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x41\xc6\x0c\x07\x08\x0b",
    "realigned": b"\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00",
    "r10_frame": b"\x0c\x0a\x00",
    "plt": b"\x0e\x10\x46\x0e\x18\x4a\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22",
    "end": b"\x07\x10",
    "val_offset": b"\x14\x06\x02\x16\x10\x02\x77\x00\x2e\x10",
    "far_advance": b"\x02\x10\x0e\x20\x03\x20\x00\x0e\x28\x04\x40\x00\x00\x00\x0e\x30",
    "signed": b"\x12\x07\x7c\x13\x7a\x11\x06\x02",
    "register": b"\x09\x06\x03\x08\x0c\x05\x03\x04",
}


def main() -> None:
    SEEDS.mkdir(parents=True, exist_ok=True)
    for name, program in PROGRAMS.items():
        for suffix, mode, body in [
            ("", 0, table(program)),
            ("_absolute", 0, table(program, encoding=0)),
            ("_sorted", 1, with_header(table(program))),
        ]:
            address = (CODE - SECTION) // 16 + 4
            (SEEDS / f"{name}{suffix}").write_bytes(bytes([mode]) + struct.pack("<H", address) + body)
    signal = table(b"\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01\x10\x06\x03\x77\xf8\x00", signal=True)
    (SEEDS / "signal").write_bytes(b"\0" + struct.pack("<H", 0x14) + signal)


main()
