"""The folder of this package."""

from __future__ import annotations

import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
