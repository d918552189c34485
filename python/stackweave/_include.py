"""Where the headers of the C interface are."""

from __future__ import annotations

import os


def get_include() -> str:
    """The folder with stackweave.h and stackweave.hpp, for hosts that are built against this package.

    The functions are those of the package's own module, which is loaded already: see docs/reference/c-interface.md.
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


get_include.__module__ = "stackweave"
