"""Records the phases that torch times itself: AOTAutograd, Inductor's passes and code generation, Triton, guards."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .watch import PHASE, RUN, Open, Watch, quiet

if TYPE_CHECKING:
    from collections.abc import Callable

    _Function = Callable[..., Any]

#: The phase that is a separate compilation: backward graphs are compiled when they are first needed.
BACKWARD = "entire_backward_compile"
#: The phase that ends with the tracing of a function, even while an unrelated exception is handled.
TRACING = "bytecode_tracing"


@quiet
def begin_phase(watch: Watch, name: str) -> None:
    if name == BACKWARD and watch.innermost(RUN) is None:
        begin_backward(watch)
    if watch.with_phases:
        watch.begin(PHASE, name, watch.timing.phase(name))


def begin_backward(watch: Watch) -> None:
    compile_id = current_compile_id()
    name, filename, line = watch.compiled.get(compile_id, ("?", "", 0))
    run = watch.timing.run(
        f"compile backward of {name}", filename, line, compile_id=compile_id, function=name, direction="backward"
    )
    watch.begin(RUN, BACKWARD, run)


def current_compile_id() -> str | None:
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    current = None if context is None else context.current_compile_id()
    return None if current is None else str(current)


@quiet
def end_phase(watch: Watch, name: str) -> None:
    phase = watch.innermost(PHASE, name)
    if phase is not None:
        watch.end(phase, phase_error(watch, phase))
    if name == BACKWARD:
        run = watch.innermost(RUN, BACKWARD)
        if run is not None:
            watch.end(run, watch.error_of(run))


def phase_error(watch: Watch, phase: Open) -> BaseException | None:
    if phase.key == TRACING and not watch.thread.has_failed:
        return None
    return watch.error_of(phase)


def event_starts(watch: Watch, original: _Function) -> _Function:
    """Replaces ChromiumEventLogger.log_event_start."""

    def log_event_start(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if watch.is_on:
            begin_phase(watch, args[0] if args else kwargs.get("event_name", "?"))
        return result

    return log_event_start


def event_ends(watch: Watch, original: _Function) -> _Function:
    """Replaces ChromiumEventLogger.log_event_end."""

    def log_event_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.is_on:
            end_phase(watch, args[0] if args else kwargs.get("event_name", "?"))
        return original(self, *args, **kwargs)

    return log_event_end
