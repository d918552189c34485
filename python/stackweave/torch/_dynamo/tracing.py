"""Records the functions that Dynamo traces: the compiled one, and those that it calls and inlines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .watch import CALL, ROOT, RUN, Open, Watch, first_line, quiet

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType

    _Function = Callable[..., Any]


def frame_of(watch: Watch, code: CodeType, depth: int) -> Any:
    """Returns a frame for the tracing of code. Bytecode is counted in code units, as the interpreter does."""
    return watch.timing.phase(
        name_of(code),
        code.co_filename,
        code.co_firstlineno,
        bytecode_count=len(code.co_code) // 2,
        inline_depth=depth,
    )


def name_of(code: CodeType) -> str:
    """Returns the name with its class, which code objects have from 3.11 on."""
    return getattr(code, "co_qualname", code.co_name)


@quiet
def begin_call(watch: Watch, code: CodeType, depth: Callable[[], int]) -> Open:
    return watch.begin(CALL, None, frame_of(watch, code, depth()))


@quiet
def end_call(watch: Watch, begun: Open, error: BaseException | None) -> None:
    """Ends a call. An exception of the traced program is no failure of the tracing."""
    if error is not None and is_of_program(error):
        watch.end(begun, raised=type(error).__name__)
    else:
        watch.end(begun, error)


def is_of_program(error: BaseException) -> bool:
    """Returns whether Dynamo only found that the traced program raises, as at the end of every generator."""
    known = getattr(sys.modules.get("torch._dynamo.exc"), "ObservedException", None)
    return known is not None and isinstance(error, known)


@quiet
def begin_root(watch: Watch, output: Any) -> None:
    watch.begin(ROOT, id(output), frame_of(watch, output.root_tx.f_code, 0))
    run = watch.innermost(RUN)
    if run is not None:
        run.details["attempts"] = run.details.get("attempts", 0) + 1


@quiet
def end_root(watch: Watch, output: Any) -> None:
    """Ends the tracing. Torch reports the end twice, first when it goes on to compile what it has traced.

    The second time the tracer is gone; if there was no first report, tracing has failed. With nested graph breaks
    tracing ends in the middle of inlined calls.
    """
    root = watch.innermost(ROOT, id(output))
    if root is None:
        return
    error = watch.error_of(root) if output.root_tx is None else None
    watch.thread.has_failed = error is not None
    if error is not None:
        note_restart(watch, error)
    while (inner := watch.thread.open[-1]) is not root and inner.kind == CALL:
        watch.end(inner, error)
    watch.end(root, error)


def note_restart(watch: Watch, error: BaseException) -> None:
    run = watch.innermost(RUN)
    if run is not None and hasattr(error, "restart_reason"):
        reason = first_line(error.restart_reason or type(error).__name__)
        reasons = run.details.setdefault("restart_reasons", [])
        if reason not in reasons:
            reasons.append(reason)


class InlineCall:
    """A context manager around the tracing of an inlined call. inner is torch's own."""

    __slots__ = ("_begun", "_code", "_depth", "_inner", "_watch")

    def __init__(self, watch: Watch, code: CodeType, depth: Callable[[], int], inner: Any | None = None) -> None:
        self._watch = watch
        self._code = code
        self._depth = depth
        self._inner = inner
        self._begun: Open | None = None

    def __enter__(self) -> None:
        self._begun = begin_call(self._watch, self._code, self._depth)
        if self._inner is not None:
            self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> bool:
        handled = False
        try:
            if self._inner is not None:
                handled = bool(self._inner.__exit__(kind, error, traceback))
        finally:
            if self._begun is not None:
                end_call(self._watch, self._begun, error)
        return handled


def around_inline_call(watch: Watch, original: _Function) -> _Function:
    """Replaces symbolic_convert.profile_inline_call, which torch enters around each inlined call."""

    def profile_inline_call(output: Any, code: CodeType, get_inline_depth: Callable[[], int], *more: Any) -> Any:
        inner = None
        if not watch.is_on or is_over_another or _torch_profiles():
            inner = original(output, code, get_inline_depth, *more)
        return InlineCall(watch, code, get_inline_depth, inner) if watch.is_on else inner

    #: That of another profile: torch's own does nothing that we need.
    is_over_another = getattr(original, "__code__", None) is profile_inline_call.__code__
    return profile_inline_call


def _torch_profiles() -> bool:
    return bool(getattr(sys.modules.get("torch._dynamo.config"), "dynamo_profiler", False))


def inline_call(watch: Watch, original: Any) -> Any:
    """Replaces InliningInstructionTranslator.inline_call, a class method, where torch has no hook of its own."""

    def call(cls: Any, parent: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        inline = original.__get__(None, cls)
        code = _code_of(func) if watch.is_on else None
        if code is None:
            return inline(parent, func, *args, **kwargs)
        with InlineCall(watch, code, lambda: parent.inline_depth + 1):
            return inline(parent, func, *args, **kwargs)

    return classmethod(call)


def _code_of(func: Any) -> CodeType | None:
    """Returns the code of a function, or None: for some functions only torch's tracing finds it."""
    try:
        code: CodeType = func.get_code()
    except Exception:
        return None
    return code


def resume_generator(watch: Watch, original: _Function) -> _Function:
    """Replaces inline_call_ of an inlined generator: each resumption is a call."""

    def inline_call_(self: Any) -> Any:
        if not watch.is_on:
            return original(self)
        with InlineCall(watch, self.f_code, lambda: self.inline_depth):
            return original(self)

    return inline_call_


def tracing_starts(watch: Watch, original: _Function) -> _Function:
    """Replaces OutputGraph.mark_bytecode_tracing_start."""

    def mark_bytecode_tracing_start(self: Any) -> Any:
        result = original(self)
        if watch.is_on:
            begin_root(watch, self)
        return result

    return mark_bytecode_tracing_start


def tracing_stops(watch: Watch, original: _Function) -> _Function:
    """Replaces OutputGraph.mark_bytecode_tracing_stop."""

    def mark_bytecode_tracing_stop(self: Any) -> Any:
        if watch.is_on:
            end_root(watch, self)
        return original(self)

    return mark_bytecode_tracing_stop
