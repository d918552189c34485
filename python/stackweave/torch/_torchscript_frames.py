"""The frames of TorchScript programs, which torch's own functions report."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._native import Traceback

Frame = tuple[str, str, int]

WHOLE = "end of stack"
#: The native functions that run TorchScript, the preferred one first: builds differ in which of them have names.
RUNS_IN = ["torch::jit::InterpreterStateImpl::run", "torch::jit::InterpreterState::run"]


#: The most stacks that are remembered as without TorchScript.
KEPT = 100_000


class TorchScriptFrames:
    """Finds whether TorchScript runs on this thread, and is a frame source for the next capture.

    Other captures get no frames: their place in the stack is not known. Code that captures from Python runs inside of
    TorchScript, not the other way round.
    """

    def __init__(self, gather: Callable[..., Any], symbolize: Callable[..., Any]) -> None:
        self._gather = gather
        self._symbolize = symbolize
        self._found = threading.local()
        #: Numbers of woven stacks. A query of torch takes longer than a capture, and its result depends on the stack.
        self._without: set[int] = set()

    def are_in(self, traceback: Traceback) -> bool:
        """Returns whether TorchScript runs in a stack that was just captured with native frames."""
        stack = traceback.stack_id
        if stack in self._without:
            return False
        frames = self._symbolize([self._gather(False, True, False)])[0]
        if frames:
            self._found.frames = [(frame["name"], frame["filename"], frame["line"]) for frame in frames]
            return True
        # The interpreter may be in the part that was cut off.
        if stack and traceback.stop_reason == WHOLE:
            if len(self._without) >= KEPT:
                self._without.clear()
            self._without.add(stack)
        return False

    def __call__(self) -> list[Frame]:
        """Returns the frames that were found, once."""
        frames: list[Frame] = self._found.__dict__.pop("frames", [])
        return frames
