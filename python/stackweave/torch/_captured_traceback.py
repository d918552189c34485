"""What stands behind torch's names while stackweave is installed.

Captures that have native frames leave out the functions of this file: so whatever captures is here, and nothing else.
"""

from __future__ import annotations

import operator
from traceback import FrameSummary, StackSummary, format_list
from typing import TYPE_CHECKING, Any

from .._native import Traceback, capture, plain_addresses, plain_frames, register_frame_source
from ._torchscript_frames import RUNS_IN, TorchScriptFrames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._native import Frame

MODES = ("addr2line", "fast", "dladdr")


class Torch:
    """What torch had in the places that are replaced, and what else is needed of it."""

    def __init__(self, profiler: Any, captured_traceback: Any, current_node: Callable[[], Any]) -> None:
        self.gather: Callable[..., Any] = profiler.gather_traceback
        self.symbolize: Callable[..., Any] = profiler.symbolize_tracebacks
        self.addresses: Callable[..., Any] = profiler.symbolize_addresses
        self.gathered: type = type(self.gather(python=False, script=False, cpp=False))
        self.captured_traceback = captured_traceback
        self.script_frames = TorchScriptFrames(self.gather, self.symbolize)
        #: The node that autograd runs on this thread.
        self.current_node = current_node


#: From the first install() on.
_torch: Torch
#: Whether ours stand behind torch's names. Who has kept one of ours gets torch's otherwise.
_is_on = False


class GatheredTraceback:
    """A captured stack with what torch keeps besides: as its own object, but it can be looked at."""

    __slots__ = ("forward_traceback", "hides_native", "traceback")

    def __init__(self, traceback: Traceback, forward_traceback: list[str] | None, hides_native: bool) -> None:
        self.traceback = traceback
        #: Where the forward pass made the node of autograd that was running: a string for each frame, outermost first.
        self.forward_traceback = forward_traceback
        #: Native frames were captured only to know where those of TorchScript belong.
        self.hides_native = hides_native

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Those of the traceback. With native ones, whether or not they were asked for, where TorchScript runs."""
        return self.traceback.frames

    def __repr__(self) -> str:
        return f"<stackweave.torch.GatheredTraceback of {self.traceback!r}>"


def forward_traceback(traceback: Any) -> list[str] | None:
    """Where the forward pass made the node of autograd that was running when this was captured, under anomaly mode.

    Takes what gather_traceback() or CapturedTraceback.extract() gave.
    """
    traceback = getattr(traceback, "tb", traceback)
    frames: list[str] | None = getattr(traceback, "forward_traceback", None)
    return frames


GatheredTraceback.__module__ = forward_traceback.__module__ = "stackweave.torch"


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> Any:
    """gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> stackweave.Traceback

    Captures the stack of this thread, woven. Gives a GatheredTraceback with it inside of TorchScript, and in a backward
    pass under anomaly mode.
    """
    if not _is_on:
        return _torch.gather(python=python, script=script, cpp=cpp)
    if type(python) is not bool or type(script) is not bool or type(cpp) is not bool:
        python, script, cpp = _truth("python", python), _truth("script", script), _truth("cpp", cpp)
    return _gather(python, script, cpp)


def _gather(python: bool, script: bool, cpp: bool) -> Any:
    forward = _forward_traceback() if python and _torch.current_node() is not None else None
    # This function and its caller. Under a frame evaluator of Dynamo's there are native frames between them: what is
    # left of both then is left out when names are looked up.
    own = 2 if python else 0
    if script:
        look = capture(python=python, native=True, script=True, skip=own)
        if _torch.script_frames.are_in(look):
            with register_frame_source(_torch.script_frames):
                traceback = capture(python=python, native=True, script=True)
            return GatheredTraceback(traceback, forward, not cpp)
        traceback = look if cpp else capture(python=python, native=False, script=True, skip=own)
    else:
        traceback = capture(python=python, native=cpp, script=False, skip=own)
    return traceback if forward is None else GatheredTraceback(traceback, forward, False)


def _forward_traceback() -> list[str] | None:
    node = _torch.current_node()
    metadata = getattr(node, "metadata", None)
    frames = metadata.get("traceback_") if isinstance(metadata, dict) else None
    return list(frames) if isinstance(frames, list) and frames else None


def _truth(name: str, value: Any) -> bool:
    """As torch takes flags: whatever has a truth, but not because it has a length."""
    if value is None or hasattr(type(value), "__bool__"):
        return bool(value)
    raise TypeError(f"gather_traceback(): {name} must be a bool, not {type(value).__name__}")


def symbolize_tracebacks(tracebacks: list[Any], /) -> list[list[dict[str, Any]]]:
    """symbolize_tracebacks(arg0: list) -> list[list[dict]]

    Names the frames of captured stacks, torch's own among them.
    """
    if not isinstance(tracebacks, list):
        raise TypeError(f"symbolize_tracebacks() takes a list of tracebacks, not {type(tracebacks).__name__}")
    ours, theirs = [], []
    for index, traceback in enumerate(tracebacks):
        own = _ours(traceback)
        if own is not None:
            ours.append(own)
        elif type(traceback) is _torch.gathered:
            theirs.append(traceback)
        else:
            # Torch's own function takes whatever it is given for one of its objects, and crashes.
            what = type(traceback).__name__
            raise TypeError(f"symbolize_tracebacks(): item {index} must be a captured traceback, not {what}")
    if not theirs:
        return _named(ours)
    ours_named, theirs_named = iter(_named(ours)), iter(_torch.symbolize(theirs))
    return [next(theirs_named if type(each) is _torch.gathered else ours_named) for each in tracebacks]


def _ours(traceback: Any) -> tuple[Traceback, bool] | None:
    """The stack, and whether its native frames are hidden. None if it is not ours."""
    if type(traceback) is Traceback:
        return traceback, False
    if type(traceback) is GatheredTraceback:
        return traceback.traceback, traceback.hides_native
    return None


def _named(ours: list[tuple[Traceback, bool]]) -> list[list[dict[str, Any]]]:
    return plain_frames([traceback for traceback, _ in ours], [hides for _, hides in ours], __file__, RUNS_IN)


def symbolize_addresses(addresses: Iterable[int], mode: str, /) -> list[tuple[str, int, str]]:
    """symbolize_addresses(arg0: Sequence[int], arg1: str) -> list[tuple[str, int, str]]

    (filename, line, function) for each address, whichever of torch's modes is asked for.
    """
    if not isinstance(mode, str) or isinstance(addresses, (str, bytes)):
        raise TypeError("symbolize_addresses() takes a list of addresses and the name of a mode")
    try:
        read = [operator.index(address) for address in addresses]
    except TypeError:
        raise TypeError("symbolize_addresses(): the addresses must be a list of int") from None
    if any(not 0 <= address < 1 << 64 for address in read):
        raise TypeError("symbolize_addresses(): an address is an int from 0 to 2**64 - 1")
    if mode not in MODES:
        raise RuntimeError(f"unexpected mode {mode}")
    return plain_addresses(read)


def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> Any:
    """Captures the stack of this thread, from the caller on: Python's frames, and others if they are wanted."""
    if script or cpp:
        if skip != 0:
            raise AssertionError("skip is for stacks of Python frames alone: leave it out, or script and cpp")
        return _torch.captured_traceback(_gather(True, bool(script), bool(cpp)))
    traceback: Any = capture(native=False, script=False)
    if _torch.current_node() is not None and (forward := _forward_traceback()):
        traceback = GatheredTraceback(traceback, forward, False)
    # As torch does: the frame of this function is there, and skipped when the stack is looked at.
    return _torch.captured_traceback(traceback, skip + 1)


def summary(self: Any) -> StackSummary:
    """The frames as a traceback.StackSummary, outermost first."""
    if self.tb is None:
        return StackSummary()
    return _summary_of(symbolize_tracebacks([self.tb])[0], self.skip)


def format_all(tbs: Iterable[Any]) -> list[list[str]]:
    """A list of strings for each, as format() gives. All names are looked up at once."""
    tbs = list(tbs)
    named = iter(symbolize_tracebacks([each.tb for each in tbs if each.tb is not None]))
    return [[] if each.tb is None else format_list(_summary_of(next(named), each.skip)) for each in tbs]


def _summary_of(frames: list[dict[str, Any]], skip: int) -> StackSummary:
    places = (FrameSummary(frame["filename"], frame["line"], frame["name"]) for frame in reversed(frames[skip:]))
    return StackSummary(places)


def of_torch() -> Torch:
    """What torch had. install() has been called."""
    return _torch


def know(torch: Torch) -> None:
    """Before the first of ours is put in a place."""
    global _torch
    _torch = torch


def switch(is_on: bool) -> None:
    """Whether gather_traceback() is ours for those who have kept it."""
    global _is_on
    _is_on = is_on
