"""Puts our functions into torch's places, and takes them out again.

What there is to hook differs between versions of torch: whatever exists is used, and what is missing is told.
"""

from __future__ import annotations

import sys
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


class Hooks:
    """What was replaced, from install() to remove()."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    @property
    def is_installed(self) -> bool:
        return bool(self._replaced)

    def install(self) -> None:
        """Never raises: what can't be hooked is an error of the watch."""
        for place in places():
            try:
                self._replace(place)
            except Exception as error:
                self._watch.note_error(f"{place} can't be hooked", error)
        try:
            _leave_uncompiled([*(_code_of(ours) for *_, ours in self._replaced), *_own_code()])
        except Exception as error:
            self._watch.note_error("the hooks may be compiled", error)

    def _replace(self, place: Place) -> None:
        holder = place.holder()
        found = getattr(holder, place.name)
        before = vars(holder).get(place.name, _MISSING)
        # A class method is taken as it lies in its class, not as it is bound to it.
        ours = place.replace(self._watch, before if isinstance(before, classmethod) else found)
        setattr(holder, place.name, ours)
        self._replaced.append((holder, place.name, before, ours))

    def remove(self) -> None:
        """What somebody else has put over ours stays; ours then only passes on."""
        self._watch.is_on = False
        while self._replaced:
            holder, name, before, ours = self._replaced.pop()
            if vars(holder).get(name) is not ours:
                continue
            if before is _MISSING:
                delattr(holder, name)
            else:
                setattr(holder, name, before)


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
