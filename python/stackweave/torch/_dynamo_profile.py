"""`Profile`: a recording of what torch.compile does. Imported with stackweave.torch.dynamo."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

from .. import _subprocess
from .._recording_options import MEMORY, flag
from .._timing import Timing
from . import _dynamo_hooks
from ._dynamo_hooks import Hooks
from ._dynamo_rows import Compile, compiles, report
from ._dynamo_watch import Watch
from ._import_watch import ImportWatch

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from typing_extensions import Self

    from .._recording import Summary


class Profile(Timing):
    """Where torch.compile spends its time: each compilation, the functions that Dynamo traces, and torch's own phases.

    It records from when it is made to stop(), or to the end of a with statement. A recording without a path is gone
    with it, unless save() is called. Torch is not imported; if it comes later, it is watched from then on. With
    phases=False only compilations and functions are recorded, and not what torch times itself: AOTAutograd, Inductor,
    code generation, guards.

    stats() is a pstats.Stats, compiles() has a row for each compilation. The other options, and what can be asked of
    it, are those of Timing.
    """

    __slots__ = ("_hooks", "_import_watch", "_watch")

    _watch: Watch
    _hooks: Hooks
    _import_watch: ImportWatch

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        phases: bool = True,
        clock: Callable[[], int] | None = None,
        memory: int | str = MEMORY,
        when_full: Literal["block", "drop"] = "block",
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._watch_torch(phases=flag("phases", phases))
        super().__init__(
            path,
            clock=clock,
            memory=memory,
            when_full=when_full,
            flush_every=flush_every,
            follow_forks=follow_forks,
            subprocesses=subprocesses,
            overwrite=overwrite,
        )
        self.start()

    @classmethod
    def from_environment(cls, *, phases: bool = True) -> Self | None:
        """Records in a program that a recording one has started, if that said subprocesses=True. None otherwise.

        A program that a profiled one has started is profiled anyway, from where it imports torch's compiler on.
        """
        profile = super().from_environment()
        if profile is not None:
            profile._watch_torch(phases=flag("phases", phases))
            profile._import_watch.start()
        return profile

    @classmethod
    def _record_subprocess(cls, options: dict[str, Any]) -> None:
        """In a program that a profiled one has started, and which does not know. Without torch it has no file."""

        def imported() -> None:
            try:
                cls.from_environment(**options)
            except Exception as error:
                _subprocess.tell_unrecorded(error)

        ImportWatch(_dynamo_hooks.MODULE, imported).start()

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        return "dynamo", {"phases": self._watch.with_phases}

    def _watch_torch(self, *, phases: bool) -> None:
        self._watch = Watch(self, phases=phases)
        self._hooks = Hooks(self._watch)
        self._import_watch = ImportWatch(_dynamo_hooks.MODULE, self._hooks.install)

    def start(self) -> Self:
        """Begins to record, if it has not begun."""
        super().start()
        if self.state == "recording":
            self._import_watch.start()
        return self

    def compiles(self) -> list[Compile]:
        """A row for each compilation, in the order in which they began."""
        return compiles(self)

    def report(self, count: int = 20) -> str:
        """The compilations, and the functions and phases that took most of the time, as text."""
        return report(self, count, self.hook_errors())

    def hook_state(self) -> Literal["waiting", "hooked", "unhooked"]:
        """Whether torch is watched: it may not have been imported yet, and is let alone at the end."""
        if not self._watch.is_on:
            return "unhooked"
        return "hooked" if self._hooks.is_installed else "waiting"

    def hook_errors(self) -> list[str]:
        """What has gone wrong in the hooks, a line for each kind. Torch never sees that."""
        return self._watch.errors()

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"<stackweave.torch.dynamo.Profile {self.path!r}, {self.state}>"

    def _end_source(self) -> None:
        self._import_watch.stop()
        self._hooks.remove()

    def _stop_once(self, *, by_program: bool, stacklevel: int) -> Summary:
        is_first = self._summary is None
        summary = super()._stop_once(by_program=by_program, stacklevel=stacklevel and stacklevel + 1)
        if is_first and stacklevel and self._watch.error_count:
            told = "; ".join(self.hook_errors())
            warnings.warn(f"something was missed while torch compiled: {told}", RuntimeWarning, stacklevel=stacklevel)
        return summary

    def _forked(self) -> None:
        _dynamo_hooks.forget_lock()
        super()._forked()


Profile.__module__ = "stackweave.torch.dynamo"
