"""Writes the line table of every code object of the standard library, and the positions that the interpreter reports:
python dump_line_tables.py FILE

Per code object: first line, length of the table, the table, number of ranges; per range: its end, and line, end line,
column, end column, or -1. All numbers are little-endian and 32 bits wide.
"""

import ctypes
import importlib.util
import itertools
import marshal
import os
import struct
import sys
import sysconfig
import types
import warnings

SKIPPED = {"test", "tests", "site-packages", "dist-packages", "__pycache__", "lib2to3", "idlelib", "turtledemo"}
HEADER = 16  # of a .pyc file


def modules():
    for folder, folders, names in os.walk(sysconfig.get_path("stdlib")):
        folders[:] = sorted(set(folders) - SKIPPED)
        for name in sorted(names):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def load(path):
    try:
        with open(importlib.util.cache_from_source(path), "rb") as file:
            content = file.read()
        if content[:4] == importlib.util.MAGIC_NUMBER:
            return marshal.loads(content[HEADER:])
    except (OSError, NotImplementedError):
        pass
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec")


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


if sys.version_info >= (3, 11):

    def positions(code):
        return code.co_positions()

else:
    address_to_line = ctypes.pythonapi.PyCode_Addr2Line
    address_to_line.argtypes = [ctypes.py_object, ctypes.c_int]

    def positions(code):
        for address in range(0, len(code.co_code), 2):
            yield address_to_line(code, address), None, None, None


def number(value):
    return -1 if value is None else value


def main(target):
    warnings.simplefilter("ignore")
    with open(target, "wb") as file:
        for code in itertools.chain.from_iterable(codes(load(path)) for path in modules()):
            ranges, end = [], 0
            for position, group in itertools.groupby(positions(code)):
                end += 2 * sum(1 for _ in group)
                ranges.append(struct.pack("<5i", end, *map(number, position)))
            table = code.co_linetable
            file.write(struct.pack("<2i", code.co_firstlineno, len(table)) + table + struct.pack("<i", len(ranges)))
            file.write(b"".join(ranges))


if __name__ == "__main__":
    main(sys.argv[1])
