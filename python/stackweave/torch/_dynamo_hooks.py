"""Puts our functions into torch's places, and takes them out again.

What there is to hook differs between versions of torch: whatever exists is used, and what is missing is told.
"""

from __future__ import annotations

import sys
import threading
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _feeding
from . import _dynamo_compiles, _dynamo_phases, _dynamo_tracing, _dynamo_watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ._dynamo_watch import Watch

#: When this is imported, everything is that we hook.
MODULE = "torch._dynamo"

_MISSING = object()


class Place(NamedTuple):
    """Something of torch's that is replaced: a function of a module, or a method of a class in it."""

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


COMPILE = Place("convert_frame", "", "_compile", _dynamo_compiles.compiling)
ROOT = (
    Place("output_graph", "OutputGraph", "mark_bytecode_tracing_start", _dynamo_tracing.tracing_starts),
    Place("output_graph", "OutputGraph", "mark_bytecode_tracing_stop", _dynamo_tracing.tracing_stops),
)
#: Torch's own hook, and what is around inlined calls where it has none.
INLINED = Place("symbolic_convert", "", "profile_inline_call", _dynamo_tracing.around_inline_call)
INLINED_BEFORE = (
    Place("symbolic_convert", "InliningInstructionTranslator", "inline_call", _dynamo_tracing.inline_call),
    Place(
        "symbolic_convert", "InliningGeneratorInstructionTranslator", "inline_call_", _dynamo_tracing.resume_generator
    ),
)
PHASES = (
    Place("utils", "ChromiumEventLogger", "log_event_start", _dynamo_phases.event_starts),
    Place("utils", "ChromiumEventLogger", "log_event_end", _dynamo_phases.event_ends),
)


def places() -> tuple[Place, ...]:
    """Those of the torch that is there."""
    inlined = (INLINED,) if INLINED.exists() else INLINED_BEFORE
    return (COMPILE, *ROOT, *inlined, *PHASES)


class _Replaced:
    """What lies in a place, and what lay there before."""

    __slots__ = ("before", "holder", "name", "ours")

    def __init__(self, holder: Any, name: str, before: Any, ours: Any) -> None:
        self.holder = holder
        self.name = name
        self.before = before
        self.ours = ours

    def put_back(self) -> bool:
        """Whether it could be: somebody may have put something over ours."""
        if vars(self.holder).get(self.name) is not self.ours:
            return False
        if self.before is _MISSING:
            delattr(self.holder, self.name)
        else:
            setattr(self.holder, self.name, self.before)
        return True


#: Those that are in torch's places: later ones call earlier ones.
_installed: list[Hooks] = []
#: Nothing is imported while it is held.
_lock = threading.RLock()


def forget_lock() -> None:
    """In a forked child, where the thread that has it is not."""
    global _lock
    _lock = threading.RLock()


class Hooks:
    """What was replaced, from install() to remove(). There may be several, which end in any order."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._replaced: list[_Replaced] = []

    @property
    def is_installed(self) -> bool:
        return bool(self._replaced)

    def install(self) -> None:
        """Never raises: what can't be hooked is an error of the watch."""
        with _lock:
            if not self._watch.is_on:
                return
            _installed.append(self)
            for place in places():
                try:
                    self._replace(place)
                except Exception as error:
                    self._watch.note_error(f"{place} can't be hooked", error)
        try:
            _leave_uncompiled([*(_code_of(each.ours) for each in self._replaced), *_own_code()])
        except Exception as error:
            self._watch.note_error("the hooks may be compiled", error)

    def _replace(self, place: Place) -> None:
        holder = place.holder()
        found = getattr(holder, place.name)
        before = vars(holder).get(place.name, _MISSING)
        # A class method is taken as it lies in its class, not as it is bound to it.
        ours = place.replace(self._watch, before if isinstance(before, classmethod) else found)
        setattr(holder, place.name, ours)
        self._replaced.append(_Replaced(holder, place.name, before, ours))

    def remove(self) -> None:
        """What somebody else has put over ours stays; ours then only passes on."""
        with _lock:
            self._watch.is_on = False
            if self in _installed:
                _installed.remove(self)
            while self._replaced:
                replaced = self._replaced.pop()
                if not replaced.put_back():
                    _pass_on(replaced)


def _pass_on(gone: _Replaced) -> None:
    """Who came over it will put back what lay there before."""
    for replaced in (each for hooks in _installed for each in hooks._replaced):
        if replaced.before is gone.ours:
            replaced.before = gone.before


def _code_of(ours: Any) -> types.CodeType:
    code: types.CodeType = getattr(ours, "__func__", ours).__code__
    return code


def _own_code() -> Iterator[types.CodeType]:
    """Of every function in the modules that torch calls, and of what is wrapped in them."""
    for module in (_dynamo_watch, _dynamo_phases, _dynamo_tracing, _dynamo_compiles, _feeding):
        for value in vars(module).values():
            for function in (value, *(vars(value).values() if isinstance(value, type) else ())):
                while isinstance(function, types.FunctionType):
                    yield function.__code__
                    function = getattr(function, "__wrapped__", None)


def _leave_uncompiled(codes: Iterable[types.CodeType]) -> None:
    """Torch may time something while a compiled program runs: our functions are no part of that program."""
    skip = getattr(sys.modules.get(f"{MODULE}.eval_frame"), "skip_code", None)
    if skip is not None:
        for code in codes:
            skip(code)
