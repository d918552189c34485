"""The lines of a model behind a line of a file that Inductor has generated.

Registered when this is imported, for captured stacks and for recordings. Inductor is looked for at each question and
never imported: the program may import it later, and has files generated as long as it runs. So nothing is remembered.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right

from .._native import register_extra_frames

#: A frame as Python prints it. The next line is a line of source, which may be any text.
_FRAME = re.compile(r'^[ \t]*File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


def frames_behind(filename: str, line: int) -> list[tuple[str, str, int]] | None:
    """Returns the frames of the model as (name, filename, line), innermost first; None for a line of another file."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    linemap = getattr(cache, "linemaps", {}).get(filename)
    if not linemap:
        return None
    starts, traces = linemap
    place = bisect_right(starts, line)
    trace = traces[place - 1] if place else None
    if not trace:
        return None
    return [(name, source, int(number)) for source, number, name in reversed(_FRAME.findall(trace))] or None


_REGISTRATION = register_extra_frames(frames_behind)
