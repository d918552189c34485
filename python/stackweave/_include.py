"""The folder of the headers of the C interface."""

from __future__ import annotations

import os

from ._location import FOLDER


def get_include() -> str:
    """Returns the folder with stackweave.h and stackweave.hpp, for hosts that are built against this package.

    >>> import os
    >>> sorted(os.listdir(stackweave.get_include()))
    ['stackweave.h', 'stackweave.hpp']

    The functions are those of the package's native module, which is loaded already: see docs/reference/c-interface.md.
    """
    return os.path.join(FOLDER, "include")


get_include.__module__ = "stackweave"
