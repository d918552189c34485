"""`%load_ext stackweave`: magics that record cells and statements of IPython, and show the report below them.

IPython is there whenever a function of this is called; the package does not need it otherwise.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple

import stackweave

from ._memory_command import WORDS
from ._native import StackweaveError
from ._notebook_cell import Cell, Shell, awaits, number_of, shown_without_us
from ._notebook_options import RECORDERS, WrongOption, asked, asked_report, help_of
from ._notebook_view import cells_of, is_replaceable, show
from ._printable import printable
from ._recorded_program import in_words_of_options

if TYPE_CHECKING:
    from ._notebook_options import AskedCell
    from ._sources import SourcedRecording


def load(shell: Shell) -> None:
    """Adds the magics."""
    for name in RECORDERS:
        if not hasattr(stackweave, name):
            continue
        magic = Magic(shell, name)
        shell.register_magic_function(_documented(magic.line, help_of(name)), "line", name)
        shell.register_magic_function(_documented(magic.cell, help_of(name)), "cell", name)
    shell.register_magic_function(Magic(shell, "report").report, "line", "stackweave_report")
    transformers = shell.input_transformers_cleanup
    if not any(isinstance(each, AwaitedCells) for each in transformers):
        transformers.append(AwaitedCells(shell))


def unload(shell: Shell) -> None:
    """Takes them away."""
    for name in RECORDERS:
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(name, None)
    shell.magics_manager.magics["line"].pop("stackweave_report", None)
    transformers = shell.input_transformers_cleanup
    transformers[:] = [each for each in transformers if not isinstance(each, AwaitedCells)]


def _documented(method: Any, text: str) -> Any:
    """What `%%trace?` shows is the text of the options."""
    from IPython.core.magic import no_var_expand  # type: ignore[import-not-found]

    def magic(*args: Any) -> Any:
        return method(*args)

    magic.__doc__ = text
    return no_var_expand(magic)


def _wrong(sentence: str) -> Exception:
    """What IPython shows as one line."""
    from IPython.core.error import UsageError  # type: ignore[import-not-found]

    return UsageError(sentence)  # type: ignore[no-any-return]


class AwaitedCells:
    """Cells that await something at their top can only be awaited themselves: their magic is, then."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._magic = re.compile(rf"%%({'|'.join(RECORDERS)})\b(.*)")

    def __call__(self, lines: list[str]) -> list[str]:
        found = self._magic.match(lines[0]) if lines else None
        body = "".join(lines[1:])
        if found is None or not awaits(self._shell, body):
            return lines
        return [f"await get_ipython().run_cell_magic({found[1]!r}, {found[2].strip()!r}, {body!r})\n"]


class _Begun(NamedTuple):
    recording: SourcedRecording
    #: Where it is, unless it is kept.
    folder: tempfile.TemporaryDirectory[str] | None

    def start(self) -> None:
        try:
            self.recording.start()
        except (StackweaveError, OSError, ValueError) as error:
            self.remove()
            raise _wrong(str(error)) from None

    def remove(self) -> None:
        """All that is not to be kept."""
        if self.folder is not None:
            self.folder.cleanup()


def _nothing(value: object) -> None:
    """What is shown of a value that a semicolon follows."""


class Magic:
    """One of the magics, in a shell."""

    def __init__(self, shell: Shell, name: str) -> None:
        self._shell = shell
        self._name = name

    def line(self, line: str) -> Any:
        """`%trace statement`: gives the value of an expression."""
        options = self._asked(line)
        if not options.rest:
            raise _wrong(f"%{self._name} records the statement behind it, and %%{self._name} the cell below it")
        return self._run(options, Cell(self._shell, options.rest), lambda value: value)

    def cell(self, line: str, cell: str) -> Any:
        """`%%trace`: its last expression is shown as always."""
        options = self._asked(line)
        if options.rest:
            raise _wrong(f"%%{self._name} records the cell below it: what is {options.rest!r} in its line?")
        code = Cell(self._shell, cell)
        is_quiet = self._shell.displayhook.semicolon_at_end_of_expression(cell)
        return self._run(options, code, _nothing if is_quiet else self._display)

    def report(self, line: str) -> None:
        """%stackweave_report [--height PIXELS] [--top] [--limit SIZE] FILE

        Shows the report of a recording.
        """
        options = self._checked(asked_report, line)
        try:
            show(stackweave.open(os.path.expanduser(options.file)), options.view, title=os.path.basename(options.file))
        except (StackweaveError, OSError) as error:
            raise _wrong(str(error)) from None

    def _asked(self, line: str) -> AskedCell:
        return self._checked(lambda text: asked(self._name, text), line)  # type: ignore[no-any-return]

    def _checked(self, parse: Any, line: str) -> Any:
        try:
            return parse(line)
        except WrongOption as error:
            raise _wrong(str(error)) from None

    def _display(self, value: object) -> None:
        if value is not None:
            self._shell.displayhook(value)

    def _run(self, options: AskedCell, cell: Cell, give: Any) -> Any:
        begun = self._begin(options)
        if cell.is_async:
            return self._run_async(options, cell, give, begun)
        begun.start()
        try:
            with begun.recording:
                value = cell.run()
        except BaseException as error:
            self._end(options, begun)
            raise shown_without_us(self._shell, error) from error.__cause__
        given = give(value)
        self._end(options, begun)
        return given

    async def _run_async(self, options: AskedCell, cell: Cell, give: Any, begun: _Begun) -> Any:
        begun.start()
        try:
            with begun.recording:
                value = await cell.run_async()
        except BaseException as error:
            self._end(options, begun)
            raise shown_without_us(self._shell, error) from error.__cause__
        given = give(value)
        self._end(options, begun)
        return given

    def _begin(self, options: AskedCell) -> _Begun:
        """A recording that is about to begin: with the cell, so that nothing else is in it."""
        path = options.output
        if path and os.path.exists(path) and not is_replaceable(path):
            raise _wrong(f"{path} is there already, and is no recording: name another file with -o")
        folder = None if path else tempfile.TemporaryDirectory(prefix="stackweave-")
        try:
            where = path or os.path.join(folder.name, "cell.swv")  # type: ignore[union-attr]
            recording = getattr(stackweave, self._name)(where, **options.recording, overwrite=True)
            recording._refuse_second()
            recording._leave_out_callers()
        except (TypeError, ValueError, StackweaveError, OSError) as error:
            if folder is not None:
                folder.cleanup()
            raise _wrong(in_words_of_options(str(error), options.recording, WORDS)) from None
        return _Begun(recording, folder)

    def _end(self, options: AskedCell, begun: _Begun) -> None:
        """Shows what was recorded. The cell has run, and what came of it stays, whatever becomes of that."""
        try:
            if not options.quiet:
                title = f"In [{number_of(self._shell)}]"
                show(begun.recording, options.view, title=title, texts=cells_of(self._shell), kept=options.output)
        except (StackweaveError, OSError) as error:
            print(f"stackweave: the recording can't be shown: {printable(str(error))}", file=sys.stderr)
        finally:
            begun.remove()


__all__ = ["load", "unload"]
