"""Recorders with sources: hooks that feed them with the calls of a program, its memory, or both."""

from __future__ import annotations

import os
from _thread import allocate_lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from .. import _native
from .._native import StackweaveError, StartError
from . import process_hooks, subprocesses
from .recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from typing_extensions import Self

    from .._options.option import Option
    from .recorder import _Path

    _IfBusy = Literal["raise", "skip"]


class _Claims:
    """Which recorder each kind of source feeds, by the name of the source's class."""

    def __init__(self) -> None:
        self.current: dict[str, SourcedRecorder] = {}
        #: Held while a recorder claims its sources: threads may start several at the same moment.
        self.lock = allocate_lock()
        os.register_at_fork(after_in_child=self.lock._at_fork_reinit)  # type: ignore[attr-defined]


#: Kept in the native module, of which a process has one. This module is imported again where sys.modules was restored,
#: as unittest.mock.patch.dict does, and both copies must know the active recorders.
_claims: _Claims = _native.__dict__.setdefault("_claims", _Claims())


def current_of(kind: type[Source]) -> SourcedRecorder | None:
    """Returns the recorder that a source of this kind feeds."""
    return _claims.current.get(kind.__name__)


class Source(Protocol):
    """Feeds a recorder by itself. A process has at most one of each kind."""

    #: How the error about a second one names the kind.
    one: ClassVar[str]
    #: Whether it continues while the recorder records the exception that ends a with statement.
    outlasts_failures: ClassVar[bool]

    def prepare(self, recorder: SourcedRecorder) -> None:
        """Does everything that begin() needs."""

    def begin(self) -> None:
        """Starts, and does nothing else, so that no work of ours is recorded."""

    def end(self) -> None:
        """Stops before it does anything else. A second call changes nothing."""

    def leave(self) -> None:
        """Undoes prepare() where begin() failed, or must not be called."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def forked(self) -> None: ...


class SourcedRecorder(Recorder):
    """A recorder with sources. They begin in their order, and end in reverse order."""

    __slots__ = ("_if_busy", "_is_automatic", "_sources")

    #: Set by __init__ of each subclass, so that from_environment() has them.
    _sources: tuple[Source, ...]
    #: Whether it records because a parent process does, without a call in the program.
    _is_automatic: bool
    #: The behaviour of start() while another recorder records the same.
    _if_busy: _IfBusy

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._sources = ()
        self._is_automatic = False
        self._if_busy = "raise"

    def _take(self, path: _Path, options: tuple[Option, ...], given: Mapping[str, object]) -> dict[str, Any]:
        chosen = super()._take(path, options, given)
        self._if_busy = chosen.get("if_busy", self._if_busy)
        return chosen

    @classmethod
    def from_environment(cls, **options: Any) -> Self | None:
        """Records in a program that a recorder with subprocesses=True has started. Returns None in other programs.

        options are those that do not say where and how the file is written. If the program is recorded already,
        because its parent is, this recorder takes over with its own options from here on.
        """
        recorder = cls("", **options)
        for source in recorder._sources:
            current = current_of(type(source))
            if current is not None and current._is_automatic:
                with subprocesses.unchanged():
                    current._abandon()
        return recorder._begin_from_environment()

    @classmethod
    def _record_subprocess(cls, options: dict[str, Any]) -> None:
        """Records a program, which its recorded parent has started, from its start on."""
        recorder = cls("", **options)
        recorder._leave_out_callers()
        recorder._is_automatic = True
        recorder._begin_from_environment()

    def _begin_from_environment(self) -> Self | None:
        if not self._has_claimed():
            return None
        self._native_options["subprocesses"] = True
        has_begun = False
        try:
            has_begun = self._start_from_environment(self._memory_options())
        finally:
            if not has_begun:
                self._let_others_begin()
        if not has_begun:
            return None
        process_hooks.started(self)
        self._begin_sources()
        return self

    def start(self) -> Self:
        """Starts to record. With if_busy="skip" it is skipped while another one records, and its state says so."""
        if self.state in ("new", "skipped"):
            if not self._has_claimed():
                self._skip()
                return self
            self._native_options["memory_recorder"] = self._memory_options()
            # An older file stays until everything has begun.
            self._native_options["named_later"] = True
            try:
                super().start()
            except BaseException:
                self._let_others_begin()
                raise
            self._begin_sources()
        else:
            super().start()
        return self

    def pause(self) -> None:
        """Leaves out what happens until resume(). Frees of memory are noticed meanwhile."""
        if self.state == "recording":
            for source in reversed(self._sources):
                source.pause()
        super().pause()

    def resume(self) -> None:
        """Records again, after pause()."""
        was_paused = self.state == "paused"
        super().resume()
        if was_paused:
            for source in self._sources:
                source.resume()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        _end(tuple(source for source in self._sources if kind is None or not source.outlasts_failures))
        super().__exit__(kind, error, traceback)

    def _memory_options(self) -> dict[str, Any] | None:
        """Returns how memory is recorded, which the native recorder needs before that begins. None: it is not."""
        return None

    def _leave_out_callers(self) -> None:
        """Records calls from here on, without the frames that are active already."""

    def _make_way(self) -> None:
        """Ends because another recorder is about to begin, if the program did not start this one."""

    def _refuse_second(self) -> None:
        for source in self._sources:
            kind = type(source)
            current = current_of(kind)
            if current is not None:
                current._make_way()
                current = current_of(kind)
            if current is not None:
                raise StartError(f"{current!r} is on, and there can be {kind.one} at a time: stop it first")

    def _has_claimed(self) -> bool:
        """Claims the sources for this recorder. Returns False if another one has them, and this one is skipped."""
        with _claims.lock:
            try:
                self._refuse_second()
            except StackweaveError:
                if self._if_busy == "skip":
                    return False
                raise
            for source in self._sources:
                _claims.current[type(source).__name__] = self
        return True

    def _begin_sources(self) -> None:
        try:
            for source in self._sources:
                source.prepare(self)
            for source in self._sources:
                source.begin()
        except BaseException:
            self._abandon()
            raise
        try:
            self._publish()
        except BaseException:
            _end(self._sources)
            self._abandon()
            raise

    def _end_source(self) -> None:
        try:
            _end(self._sources)
        finally:
            self._let_others_begin()

    def _abandon(self) -> None:
        """Ends a recording that could not start, or must not have started. No file is left."""
        for source in reversed(self._sources):
            source.leave()
        self._let_others_begin()
        self._discard()

    def _let_others_begin(self) -> None:
        for source in self._sources:
            if current_of(type(source)) is self:
                del _claims.current[type(source).__name__]

    def _forked(self) -> None:
        super()._forked()
        for source in self._sources:
            source.forked()


def _end(sources: tuple[Source, ...]) -> None:
    """Ends the last one, and then the others even if that fails."""
    if sources:
        try:
            sources[-1].end()
        finally:
            _end(sources[:-1])
