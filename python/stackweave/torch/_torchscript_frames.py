"""The frames of TorchScript programs, as torch's own functions tell them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._native import Traceback

Frame = tuple[str, str, int]

WHOLE = "end of stack"
#: The native functions that run TorchScript, the better one first: which of them have names differs between builds.
RUNS_IN = ["torch::jit::InterpreterStateImpl::run", "torch::jit::InterpreterState::run"]


#: Of so many stacks is known that TorchScript does not run in them.
KEPT = 100_000


class TorchScriptFrames:
    """Whether TorchScript runs on this thread, and a frame source for the capture that follows.

    Other captures get nothing of it: they do not know where the frames stand. Whoever captures from Python is inside of
    TorchScript, not the other way round.
    """

    def __init__(self, gather: Callable[..., Any], symbolize: Callable[..., Any]) -> None:
        self._gather = gather
        self._symbolize = symbolize
        self._found = threading.local()
        #: Numbers of woven stacks. Torch takes longer to answer than a capture does, and the answer lies in the stack.
        self._without: set[int] = set()

    def are_in(self, traceback: Traceback) -> bool:
        """Whether there are any, where this was just captured with native frames."""
        stack = traceback.stack_id
        if stack in self._without:
            return False
        frames = self._symbolize([self._gather(False, True, False)])[0]
        if frames:
            self._found.frames = [(frame["name"], frame["filename"], frame["line"]) for frame in frames]
            return True
        # The interpreter may be in what was cut off.
        if stack and traceback.stop_reason == WHOLE:
            if len(self._without) >= KEPT:
                self._without.clear()
            self._without.add(stack)
        return False

    def __call__(self) -> list[Frame]:
        """What was found, once."""
        frames: list[Frame] = self._found.__dict__.pop("frames", [])
        return frames
