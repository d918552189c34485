"""What recordings have in common that are fed without being asked: by the calls of a program, its memory, or both."""

from __future__ import annotations

import os
from _thread import allocate_lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from . import _hooks, _native, _subprocess
from ._native import StackweaveError, StartError
from ._recording import Recording

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    _IfBusy = Literal["raise", "skip"]


class _Claims:
    """Which recording each kind of source feeds, by the name of its class."""

    def __init__(self) -> None:
        self.current: dict[str, SourcedRecording] = {}
        #: Held while a recording claims its sources: threads may start several at the same moment.
        self.lock = allocate_lock()
        os.register_at_fork(after_in_child=self.lock._at_fork_reinit)  # type: ignore[attr-defined]


#: In the native module, of which a process has one. This module is imported again where sys.modules was restored, as
#: unittest.mock.patch.dict does, and both copies must know which recordings are on.
_claims: _Claims = _native.__dict__.setdefault("_claims", _Claims())


def current_of(kind: type[Source]) -> SourcedRecording | None:
    """Returns the recording that a source of this kind feeds."""
    return _claims.current.get(kind.__name__)


def if_busy_of(value: object) -> _IfBusy:
    """Checks the option."""
    if value not in ("raise", "skip"):
        raise ValueError(f'if_busy must be "raise" or "skip", but is {value!r}')
    return "skip" if value == "skip" else "raise"


class Source(Protocol):
    """Feeds a recording by itself. There can be one of its kind at a time in a process."""

    #: How a second one is refused: what there can be one of.
    one: ClassVar[str]
    #: Whether it goes on while the recording tells of the exception that ends a with statement.
    outlasts_failures: ClassVar[bool]

    def prepare(self, recording: SourcedRecording) -> None:
        """All that is done before it begins."""

    def begin(self) -> None:
        """Nothing but to start, so that nothing of ours is recorded."""

    def end(self) -> None:
        """The first thing that is done is to stop. Again, it changes nothing."""

    def leave(self) -> None:
        """Takes back what prepare() has changed, where it has not begun, or shall not have."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def forked(self) -> None: ...


class SourcedRecording(Recording):
    """Has sources: they begin in their order, and end in the other one."""

    __slots__ = ("_if_busy", "_is_unasked", "_sources")

    #: Set by who is made: from_environment() of this class makes one as the program does.
    _sources: tuple[Source, ...]
    #: Whether the program does not know of it.
    _is_unasked: bool
    #: What start() does while another one records the same.
    _if_busy: _IfBusy

    def _set_up(self, options: dict[str, Any], dump_on: frozenset[str] = frozenset()) -> None:
        super()._set_up(options, dump_on)
        self._sources = ()
        self._is_unasked = False
        self._if_busy = "raise"

    @classmethod
    def from_environment(cls, **options: Any) -> Self | None:
        """Records in a program that a recording one has started, if that said subprocesses=True. None otherwise.

        options are those that do not say where and how it is written. A program that was started by one that records
        the same is recorded anyway, with the options of that: then it is from here on, and with these.
        """
        asked = cls("", **options)
        for source in asked._sources:
            current = current_of(type(source))
            if current is not None and current._is_unasked:
                with _subprocess.unchanged():
                    current._abandon()
        return asked._begin_from_environment()

    @classmethod
    def _record_subprocess(cls, options: dict[str, Any]) -> None:
        """From the start of a program on, which a recorded one has started, and which does not know."""
        asked = cls("", **options)
        asked._leave_out_callers()
        asked._is_unasked = True
        asked._begin_from_environment()

    def _begin_from_environment(self) -> Self | None:
        if not self._has_claimed():
            return None
        self._native_options["subprocesses"] = True
        has_begun = False
        try:
            has_begun = self._start_from_environment(self._memory_recorder())
        finally:
            if not has_begun:
                self._let_others_begin()
        if not has_begun:
            return None
        _hooks.started(self)
        self._begin_sources()
        return self

    def start(self) -> Self:
        """Begins to record. With if_busy="skip" it records nothing while another one does, and its state says so."""
        if self.state in ("new", "skipped"):
            if not self._has_claimed():
                self._skip()
                return self
            self._native_options["memory_recorder"] = self._memory_recorder()
            # An older file stays until all has begun.
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
        """Leaves out what happens from now on, until resume(). Memory that is freed meanwhile is known."""
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

    def _memory_recorder(self) -> dict[str, Any] | None:
        """What a recording has to know of who records memory, before that begins."""
        return None

    def _leave_out_callers(self) -> None:
        """Calls are recorded from here on, and not who has called until then."""

    def _make_way(self) -> None:
        """Another one is about to begin. Ends, if nobody who runs here has asked for this one."""

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
        """Makes this the one that records. False if another one does, and this one is to be skipped then."""
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
        """It could not begin, or shall not have begun: no file is left."""
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
    """Ends the last one, and then the others, whatever becomes of it."""
    if sources:
        try:
            sources[-1].end()
        finally:
            _end(sources[:-1])
