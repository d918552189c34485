"""The expected stacks, which the callers know before the captures."""

import os
import sys
import threading


class Truths:
    """Assigns numbers to expected stacks: lists of "python NAME FILE:LINE" and "native FUNCTION", innermost first."""

    def __init__(self):
        self.lock = threading.Lock()
        self.numbers = {}
        self.stacks = []
        self.local = threading.local()

    def of(self, frame, native):
        """Returns the number of the stack that begins with the native functions `native`, called from `frame`."""
        crossings = getattr(self.local, "crossings", ())
        expected = list(native)
        while frame is not None:
            if id(frame) in crossings:
                expected.append("native host_call")
            code = frame.f_code
            expected.append(f"python {code.co_name} {os.path.basename(code.co_filename)}:{frame.f_lineno}")
            frame = frame.f_back
        return self.number(tuple(expected))

    def number(self, expected):
        known = self.numbers.get(expected)
        if known is None:
            with self.lock:
                known = self.numbers.setdefault(expected, len(self.stacks))
                if known == len(self.stacks):
                    self.stacks.append(expected)
        return known

    def crossing(self):
        """Returns a context in which the calling frame calls Python through the host."""
        return Crossing(self.local, id(sys._getframe(1)))


class Crossing:
    def __init__(self, local, frame):
        self.crossings = local.__dict__.setdefault("crossings", [])
        self.frame = frame

    def __enter__(self):
        self.crossings.append(self.frame)

    def __exit__(self, *_):
        self.crossings.pop()


def found(frames, module):
    """Returns the Python frames of a resolved stack, and the host's own frames, which are in `module`."""
    result = []
    for frame in frames:
        if frame["kind"] == "python":
            result.append(f"python {frame['name']} {os.path.basename(frame['filename'])}:{frame['line']}")
        elif frame.get("module") == module and not frame["inlined"]:
            name = frame["name"].replace("(anonymous namespace)::", "").split("(")[0]
            if name.startswith(("host::", "host_")):
                result.append(f"native {name}")
    return result
