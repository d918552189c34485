"""Libraries that capture stacks in Python programs, Stackweave first. A contender is imported when its object is created.

`leaf` returns a function that captures, `frames` returns the number of frames of a capture, `resolve` names all frames of a list.
"""

import os
import sys

from library import NATIVE, PYTHON, WOVEN


class Absent(Exception):
    """The reason why a contender can't be measured."""


class NoPart(Absent):
    """The contender does not support these parts."""


def _find(module):
    try:
        return __import__(module)
    except ImportError as error:
        raise Absent("not installed" if error.name == module else f"not loadable: {error}") from error


class Ours:
    """`stackweave.capture`."""

    name = "ours"

    def __init__(self, library):
        self.stackweave = _find("stackweave")

    def leaf(self, parts):
        capture = self.stackweave.capture
        if parts == WOVEN:
            return lambda: capture()
        return (lambda: capture(native=False)) if parts == PYTHON else lambda: capture(python=False)

    def frames(self, traceback):
        return len(traceback)

    def python_frames(self, traceback):
        return sum(frame.kind == "python" for frame in traceback.frames)

    def resolve(self, tracebacks):
        return self.stackweave.symbolize(tracebacks)


class OurId(Ours):
    """`stackweave.current_stack_id`."""

    name = "ours, id"

    def leaf(self, parts):
        stack_id = self.stackweave.current_stack_id
        if parts == WOVEN:
            return lambda: stack_id()
        return (lambda: stack_id(native=False)) if parts == PYTHON else lambda: stack_id(python=False)

    def python_frames(self, stack_id):
        return None

    def frames(self, stack_id):
        return None


class TorchWay:
    """PyTorch's algorithm, implemented in the benchmark's library."""

    name = "PyTorch's way"

    def __init__(self, library):
        self.library = library

    def leaf(self, parts):
        if parts & NATIVE and not self.library.torch_way_unwinds:
            raise Absent("not installed: libunwind")
        gather = self.library.torch_way
        return lambda: gather(parts)

    def frames(self, capsule):
        return self.library.torch_way_len(capsule)


class Torch:
    """`torch._C._profiler.gather_traceback`."""

    name = "torch"

    def __init__(self, library):
        torch = _find("torch")
        self.profiler = torch._C._profiler
        self.big_library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")

    def leaf(self, parts):
        gather = self.profiler.gather_traceback
        python, native = bool(parts & PYTHON), bool(parts & NATIVE)
        return lambda: gather(python, False, native)

    def frames(self, traceback):
        return None

    def resolve(self, tracebacks):
        return self.profiler.symbolize_tracebacks(tracebacks)


class TorchMode(Torch):
    """torch with one of its modes of naming native frames."""

    def __init__(self, library):
        os.environ["TORCH_SYMBOLIZE_MODE"] = self.name.split()[1]
        super().__init__(library)


class TorchFast(TorchMode):
    name = "torch fast"


class TorchAddr2line(TorchMode):
    name = "torch addr2line"


class TorchDladdr(TorchMode):
    name = "torch dladdr"


class GetFrame:
    """A walk of the frames in Python code."""

    name = "sys._getframe"

    def __init__(self, library):
        pass

    def leaf(self, parts):
        if parts != PYTHON:
            raise NoPart
        get_frame = sys._getframe

        def walk():
            frame, found = get_frame(), []
            while frame is not None:
                found.append((frame.f_code, frame.f_lasti))
                frame = frame.f_back
            return found

        return walk

    def frames(self, found):
        return len(found)


class ExtractStack:
    """`traceback.extract_stack`, which includes names and lines."""

    name = "traceback"

    def __init__(self, library):
        self.traceback = _find("traceback")

    def leaf(self, parts):
        if parts != PYTHON:
            raise NoPart
        extract_stack = self.traceback.extract_stack
        return lambda: extract_stack()

    def frames(self, summary):
        return len(summary)

    def resolve(self, summaries):
        return [summary.format() for summary in summaries]


class LazyLines(ExtractStack):
    """`traceback` without reading source lines until they are requested."""

    def leaf(self, parts):
        walk_stack, extract = self.traceback.walk_stack, self.traceback.StackSummary.extract
        return lambda: extract(walk_stack(sys._getframe()), lookup_lines=False)


class FaultHandler:
    """`faulthandler.dump_traceback` to `/dev/null`."""

    name = "faulthandler"

    def __init__(self, library):
        self.dump_traceback = _find("faulthandler").dump_traceback
        self.null = os.open(os.devnull, os.O_WRONLY)

    def leaf(self, parts):
        if parts != PYTHON:
            raise NoPart
        dump_traceback, null = self.dump_traceback, self.null
        return lambda: dump_traceback(null, False)

    def frames(self, nothing):
        return None


ALL = [Ours, OurId, TorchWay, Torch, GetFrame, ExtractStack, FaultHandler]


def named(name, contenders):
    return next(contender for contender in contenders if contender.name == name)
