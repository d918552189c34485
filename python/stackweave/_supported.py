"""Explains why the native module can't be loaded, where the interpreter would only say that it is missing."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES


def check() -> None:
    """Raises ImportError in a free-threaded Python if the package was built for Pythons with the GIL."""
    if "t" not in sys.abiflags:
        return
    names = {f"_native{suffix}" for suffix in EXTENSION_SUFFIXES}
    if names.isdisjoint(os.listdir(os.path.dirname(__file__))):
        name = "python{}.{}".format(*sys.version_info)
        raise ImportError(f"this build of stackweave is not for a free-threaded Python: use {name} in place of {name}t")
