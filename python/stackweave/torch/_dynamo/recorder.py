"""`DynamoRecorder`: records what torch.compile does. Imported with stackweave.torch.dynamo."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

from ..._options.table import PHASES, WRITE_PHASES
from ..._recorders import subprocesses
from ..._recorders.timing import Timing
from .._import_watch import ImportWatch
from . import hooks
from .hooks import Hooks
from .watch import Watch

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from typing_extensions import Self

    from ..._recorders.recorder import Summary


class DynamoRecorder(Timing):
    """Records the time of torch.compile: each compilation, the functions that Dynamo traces, and torch's own phases.

    >>> with stackweave.torch.dynamo.profile("compile.swv") as recorder:
    ...     main()
    >>> stackweave.torch.dynamo.compiles(recorder.recording)
    []

    It records from its construction to stop(), or to the end of a with statement. Without a path the recording is gone
    with the object, unless save() is called. Torch is not imported; if it is imported later, it is recorded from then
    on. With phases=False only compilations and functions are recorded, and not what torch times itself: AOTAutograd,
    Inductor, code generation, guards.

    Its recording has stats(), a pstats.Stats, and phases(); compiles() of this module returns a row for each
    compilation. Other options: see Timing.
    """

    __slots__ = ("_hooks", "_import_watch", "_watch")

    _watch: Watch
    _hooks: Hooks
    _import_watch: ImportWatch
    _shown_as = "torch.dynamo.DynamoRecorder"

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        phases: bool = True,
        clock: Callable[[], int] | None = None,
        buffer: int | str = "64MiB",
        when_full: Literal["block", "drop"] = "block",
        flush_every: float = 0.2,
        follow_forks: bool = True,
        subprocesses: bool = False,
        overwrite: bool = False,
    ) -> None:
        given = locals()
        self._watch_torch(phases=phases)
        super().__init__(path, clock=clock, **{option.name: given[option.name] for option in WRITE_PHASES})
        self.start()

    @classmethod
    def from_environment(cls, *, phases: bool = True) -> Self | None:
        """Records in a program that was started by a recorder with subprocesses=True. Returns None in other programs.

        If that recorder is a DynamoRecorder, the program is recorded without this call, once it imports torch's
        compiler.
        """
        profile = super().from_environment()
        if profile is not None:
            profile._watch_torch(phases=phases)
            profile._import_watch.start()
        return profile

    @classmethod
    def _record_subprocess(cls, options: dict[str, Any]) -> None:
        """Records a program that its recorded parent has started. Without torch no file is written."""

        def imported() -> None:
            try:
                cls.from_environment(**options)
            except Exception as error:
                subprocesses.report_unrecorded(error)

        ImportWatch(hooks.MODULE, imported).start()

    def _for_subprocesses(self) -> tuple[str, dict[str, Any]]:
        return "dynamo", {"phases": self._watch.with_phases}

    def _watch_torch(self, *, phases: bool) -> None:
        (option,) = PHASES.options
        self._watch = Watch(self, phases=option.checked(phases))
        self._hooks = Hooks(self._watch)
        self._import_watch = ImportWatch(hooks.MODULE, self._hooks.install)

    def start(self) -> Self:
        """Starts to record. A second call changes nothing."""
        super().start()
        if self.state == "recording":
            self._import_watch.start()
        return self

    def hook_state(self) -> Literal["waiting", "hooked", "unhooked"]:
        """Returns whether torch is hooked: "waiting" until it is imported, "unhooked" at the end."""
        if not self._watch.is_on:
            return "unhooked"
        return "hooked" if self._hooks.is_installed else "waiting"

    def hook_errors(self) -> list[str]:
        """Returns the errors in the hooks, a line for each kind. They never reach torch."""
        return self._watch.errors()

    def _end_source(self) -> None:
        self._import_watch.stop()
        self._hooks.remove()

    def _stop_once(self, *, by_program: bool, stacklevel: int) -> Summary:
        is_first = self._summary is None
        summary = super()._stop_once(by_program=by_program, stacklevel=stacklevel and stacklevel + 1)
        if is_first and stacklevel and self._watch.error_count:
            errors = "; ".join(self.hook_errors())
            warnings.warn(f"something was missed while torch compiled: {errors}", RuntimeWarning, stacklevel=stacklevel)
        return summary

    def _forked(self) -> None:
        hooks.forget_lock()
        super()._forked()


DynamoRecorder.__module__ = "stackweave.torch.dynamo"
