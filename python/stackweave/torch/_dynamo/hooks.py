"""Replaces functions of torch by ours, and restores them.

The functions differ between versions of torch: those that exist are hooked, and missing ones are reported as errors.
"""

from __future__ import annotations

import sys
import threading
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._recorders import native_callbacks
from . import compiles, phases, tracing, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .watch import Watch

#: When this module is imported, all hooked modules are.
MODULE = "torch._dynamo"

_MISSING = object()


class HookPoint(NamedTuple):
    """A function of a module of torch, or a method of a class, that is replaced."""

    module: str
    owner: str
    name: str
    replace: Callable[[Watch, Any], Any]

    def holder(self) -> Any:
        module = sys.modules.get(f"{MODULE}.{self.module}")
        return getattr(module, self.owner, None) if self.owner else module

    def exists(self) -> bool:
        return hasattr(self.holder(), self.name)

    def __str__(self) -> str:
        return ".".join(part for part in (MODULE, self.module, self.owner, self.name) if part)


COMPILE = HookPoint("convert_frame", "", "_compile", compiles.compiling)
ROOT = (
    HookPoint("output_graph", "OutputGraph", "mark_bytecode_tracing_start", tracing.tracing_starts),
    HookPoint("output_graph", "OutputGraph", "mark_bytecode_tracing_stop", tracing.tracing_stops),
)
#: Torch's own hook around inlined calls, and the functions that are hooked where it has none.
INLINED = HookPoint("symbolic_convert", "", "profile_inline_call", tracing.around_inline_call)
INLINED_BEFORE = (
    HookPoint("symbolic_convert", "InliningInstructionTranslator", "inline_call", tracing.inline_call),
    HookPoint("symbolic_convert", "InliningGeneratorInstructionTranslator", "inline_call_", tracing.resume_generator),
)
PHASES = (
    HookPoint("utils", "ChromiumEventLogger", "log_event_start", phases.event_starts),
    HookPoint("utils", "ChromiumEventLogger", "log_event_end", phases.event_ends),
)


def hook_points() -> tuple[HookPoint, ...]:
    """Returns the hook points of the installed torch."""
    inlined = (INLINED,) if INLINED.exists() else INLINED_BEFORE
    return (COMPILE, *ROOT, *inlined, *PHASES)


class _Replaced:
    """A replaced function, with the original."""

    __slots__ = ("before", "holder", "name", "ours")

    def __init__(self, holder: Any, name: str, before: Any, ours: Any) -> None:
        self.holder = holder
        self.name = name
        self.before = before
        self.ours = ours

    def restore(self) -> bool:
        """Restores the original. Returns False if other code has replaced ours."""
        if vars(self.holder).get(self.name) is not self.ours:
            return False
        if self.before is _MISSING:
            delattr(self.holder, self.name)
        else:
            setattr(self.holder, self.name, self.before)
        return True


#: The installed hooks: later ones call earlier ones.
_installed: list[Hooks] = []
#: Nothing is imported while it is held.
_lock = threading.RLock()


def forget_lock() -> None:
    """Replaces the lock in a forked child, where the thread that holds it does not exist."""
    global _lock
    _lock = threading.RLock()


class Hooks:
    """The replaced functions, from install() to remove(). There may be several, which end in any order."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._replaced: list[_Replaced] = []

    @property
    def is_installed(self) -> bool:
        return bool(self._replaced)

    def install(self) -> None:
        """Installs the hooks. Never raises: a function that can't be hooked is an error of the watch."""
        with _lock:
            if not self._watch.is_on:
                return
            _installed.append(self)
            for point in hook_points():
                try:
                    self._replace(point)
                except Exception as error:
                    self._watch.note_error(f"{point} can't be hooked", error)
        try:
            _leave_uncompiled([*(_code_of(each.ours) for each in self._replaced), *_own_code()])
        except Exception as error:
            self._watch.note_error("the hooks may be compiled", error)

    def _replace(self, point: HookPoint) -> None:
        holder = point.holder()
        found = getattr(holder, point.name)
        before = vars(holder).get(point.name, _MISSING)
        # A class method is passed unbound, as it is in the dictionary of its class.
        ours = point.replace(self._watch, before if isinstance(before, classmethod) else found)
        setattr(holder, point.name, ours)
        self._replaced.append(_Replaced(holder, point.name, before, ours))

    def remove(self) -> None:
        """Removes the hooks. If other code has replaced ours, ours stays and only calls the original."""
        with _lock:
            self._watch.is_on = False
            if self in _installed:
                _installed.remove(self)
            while self._replaced:
                replaced = self._replaced.pop()
                if not replaced.restore():
                    _skip_in_chain(replaced)


def _skip_in_chain(gone: _Replaced) -> None:
    """Makes later hooks restore the original of a removed one."""
    for replaced in (each for hooks in _installed for each in hooks._replaced):
        if replaced.before is gone.ours:
            replaced.before = gone.before


def _code_of(ours: Any) -> types.CodeType:
    code: types.CodeType = getattr(ours, "__func__", ours).__code__
    return code


def _own_code() -> Iterator[types.CodeType]:
    """Yields the code of every function in the modules that torch calls, and of wrapped functions."""
    for module in (watch, phases, tracing, compiles, native_callbacks):
        for value in vars(module).values():
            for function in (value, *(vars(value).values() if isinstance(value, type) else ())):
                while isinstance(function, types.FunctionType):
                    yield function.__code__
                    function = getattr(function, "__wrapped__", None)


def _leave_uncompiled(codes: Iterable[types.CodeType]) -> None:
    """Excludes our functions from compilation: torch may call them while a compiled program runs."""
    skip = getattr(sys.modules.get(f"{MODULE}.eval_frame"), "skip_code", None)
    if skip is not None:
        for code in codes:
            skip(code)
