"""The functions that replace those of torch while stackweave is installed.

Captures with native frames leave out the functions of this file: so all functions that capture are here, and no others.
"""

from __future__ import annotations

import operator
from traceback import FrameSummary, StackSummary, format_list
from typing import TYPE_CHECKING, Any

from .._native import Traceback, capture, register_frame_source, torch_address_frames, torch_frames
from ._torchscript_frames import RUNS_IN, TorchScriptFrames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._native import Frame

MODES = ("addr2line", "fast", "dladdr")


class Torch:
    """The functions of torch that are replaced, and others that are needed."""

    def __init__(self, profiler: Any, captured_traceback: Any, current_node: Callable[[], Any]) -> None:
        self.gather: Callable[..., Any] = profiler.gather_traceback
        self.symbolize: Callable[..., Any] = profiler.symbolize_tracebacks
        self.addresses: Callable[..., Any] = profiler.symbolize_addresses
        self.gathered: type = type(self.gather(python=False, script=False, cpp=False))
        self.captured_traceback = captured_traceback
        self.script_frames = TorchScriptFrames(self.gather, self.symbolize)
        #: Returns the node that autograd runs on this thread.
        self.current_node = current_node


#: Set by the first install().
_torch: Torch
#: Whether torch's functions are replaced. If not, references to ours that were kept call torch's.
_is_on = False


class GatheredTraceback:
    """A captured stack with what torch keeps besides. It replaces torch's own object, and can be inspected.

    >>> traceback = stackweave.capture()
    >>> stackweave.torch.GatheredTraceback(traceback, None, False).frames == traceback.frames
    True
    """

    __slots__ = ("forward_traceback", "hides_native", "traceback")

    def __init__(self, traceback: Traceback, forward_traceback: list[str] | None, hides_native: bool) -> None:
        self.traceback = traceback
        #: The stack of the forward pass that made the running node of autograd: a string for each frame, outermost
        #: first.
        self.forward_traceback = forward_traceback
        #: Whether native frames were captured only to find the place of TorchScript frames.
        self.hides_native = hides_native

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the traceback. Where TorchScript runs, they always include native ones."""
        return self.traceback.frames

    def __repr__(self) -> str:
        return f"<stackweave.torch.GatheredTraceback of {self.traceback!r}>"


def forward_traceback(traceback: Any) -> list[str] | None:
    """Returns the stack of the forward pass that made the node of autograd that ran at the capture, under anomaly mode.

    >>> stackweave.torch.forward_traceback(stackweave.capture()) is None
    True

    The argument is a result of gather_traceback() or CapturedTraceback.extract().
    """
    traceback = getattr(traceback, "tb", traceback)
    frames: list[str] | None = getattr(traceback, "forward_traceback", None)
    return frames


GatheredTraceback.__module__ = forward_traceback.__module__ = "stackweave.torch"


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> Any:
    """gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> stackweave.Traceback

    Captures the stack of this thread, woven. Returns a GatheredTraceback inside of TorchScript, and in a backward pass
    under anomaly mode.
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
    """Converts a flag as torch does: any object with a truth value that is not its length."""
    if value is None or hasattr(type(value), "__bool__"):
        return bool(value)
    raise TypeError(f"gather_traceback(): {name} must be a bool, not {type(value).__name__}")


def symbolize_tracebacks(tracebacks: list[Any], /) -> list[list[dict[str, Any]]]:
    """symbolize_tracebacks(arg0: list) -> list[list[dict]]

    Names the frames of captured stacks, torch's own among them.
    """
    if not isinstance(tracebacks, list):
        raise TypeError(f"symbolize_tracebacks() takes a list of tracebacks, not {type(tracebacks).__name__}")
    ours, of_torch = [], []
    for index, traceback in enumerate(tracebacks):
        own = _ours(traceback)
        if own is not None:
            ours.append(own)
        elif type(traceback) is _torch.gathered:
            of_torch.append(traceback)
        else:
            # Torch's own function treats any object as one of its own, and crashes.
            what = type(traceback).__name__
            raise TypeError(f"symbolize_tracebacks(): item {index} must be a captured traceback, not {what}")
    if not of_torch:
        return _named(ours)
    ours_named, torch_named = iter(_named(ours)), iter(_torch.symbolize(of_torch))
    return [next(torch_named if type(each) is _torch.gathered else ours_named) for each in tracebacks]


def _ours(traceback: Any) -> tuple[Traceback, bool] | None:
    """Returns the stack, and whether its native frames are hidden; None if it is not ours."""
    if type(traceback) is Traceback:
        return traceback, False
    if type(traceback) is GatheredTraceback:
        return traceback.traceback, traceback.hides_native
    return None


def _named(ours: list[tuple[Traceback, bool]]) -> list[list[dict[str, Any]]]:
    return torch_frames([traceback for traceback, _ in ours], [hides for _, hides in ours], __file__, RUNS_IN)


def symbolize_addresses(addresses: Iterable[int], mode: str, /) -> list[tuple[str, int, str]]:
    """symbolize_addresses(arg0: Sequence[int], arg1: str) -> list[tuple[str, int, str]]

    Returns (filename, line, function) for each address, in any of torch's modes.
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
    return torch_address_frames(read)


def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> Any:
    """Captures the stack of this thread from the caller on: Python frames, and others if they are requested."""
    if script or cpp:
        if skip != 0:
            raise AssertionError("skip is for stacks of Python frames alone: leave it out, or script and cpp")
        return _torch.captured_traceback(_gather(True, bool(script), bool(cpp)))
    traceback: Any = capture(native=False, script=False)
    if _torch.current_node() is not None and (forward := _forward_traceback()):
        traceback = GatheredTraceback(traceback, forward, False)
    # As in torch, the frame of this function is captured, and skipped when the stack is shown.
    return _torch.captured_traceback(traceback, skip + 1)


def summary(self: Any) -> StackSummary:
    """Returns the frames as a traceback.StackSummary, outermost first."""
    if self.tb is None:
        return StackSummary()
    return _summary_of(symbolize_tracebacks([self.tb])[0], self.skip)


def format_all(tbs: Iterable[Any]) -> list[list[str]]:
    """Returns a list of strings for each, as format() does. All names are looked up at once."""
    tbs = list(tbs)
    named = iter(symbolize_tracebacks([each.tb for each in tbs if each.tb is not None]))
    return [[] if each.tb is None else format_list(_summary_of(next(named), each.skip)) for each in tbs]


def _summary_of(frames: list[dict[str, Any]], skip: int) -> StackSummary:
    places = (FrameSummary(frame["filename"], frame["line"], frame["name"]) for frame in reversed(frames[skip:]))
    return StackSummary(places)


def of_torch() -> Torch:
    """Returns the functions of torch. install() must have been called."""
    return _torch


def know(torch: Torch) -> None:
    """Sets the functions of torch, before the first is replaced."""
    global _torch
    _torch = torch


def switch(is_on: bool) -> None:
    """Sets whether references to our functions that were kept call ours."""
    global _is_on
    _is_on = is_on
