"""`%load_ext stackweave`: magics that record cells and statements of IPython, and show the report below them.

IPython is imported in functions: only a notebook needs it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple

import stackweave

from ..._commands.recorded_program import in_words_of_options
from ..._native import StackweaveError
from ..._printable import printable
from .cell import Cell, Shell, awaits, number_of, shown_without_us
from .options import RECORDERS, WrongOption, help_of, parse_cell, parse_report
from .view import cells_of, is_replaceable, show

if TYPE_CHECKING:
    from ..._recorders.sources import SourcedRecorder
    from .options import CellRequest


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
    """Removes the magics."""
    for name in RECORDERS:
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(name, None)
    shell.magics_manager.magics["line"].pop("stackweave_report", None)
    transformers = shell.input_transformers_cleanup
    transformers[:] = [each for each in transformers if not isinstance(each, AwaitedCells)]


def _documented(method: Any, text: str) -> Any:
    """Returns a magic whose help, as `%%trace?` shows it, is this text."""
    from IPython.core.magic import no_var_expand  # type: ignore[import-not-found]

    def magic(*args: Any) -> Any:
        return method(*args)

    magic.__doc__ = text
    return no_var_expand(magic)


def _wrong(sentence: str) -> Exception:
    """Returns an exception that IPython shows as one line."""
    from IPython.core.error import UsageError  # type: ignore[import-not-found]

    return UsageError(sentence)  # type: ignore[no-any-return]


class AwaitedCells:
    """Makes IPython await the magic of a cell that has an await outside of functions."""

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
    recorder: SourcedRecorder
    #: The temporary folder of the recording, unless it is kept.
    folder: tempfile.TemporaryDirectory[str] | None

    def start(self) -> None:
        try:
            self.recorder.start()
        except (StackweaveError, OSError, ValueError) as error:
            self.remove()
            raise _wrong(str(error)) from None

    def remove(self) -> None:
        """Removes the recording, unless it is kept."""
        if self.folder is not None:
            self.folder.cleanup()


def _ignore(value: object) -> None:
    """Shows no value, for a cell that ends with a semicolon."""


class Magic:
    """One of the magics, in a shell."""

    def __init__(self, shell: Shell, name: str) -> None:
        self._shell = shell
        self._name = name

    def line(self, line: str) -> Any:
        """Runs `%trace statement`. Returns the value of an expression."""
        options = self._parse(line)
        if not options.rest:
            raise _wrong(f"%{self._name} records the statement after it, and %%{self._name} the cell below it")
        return self._run(options, Cell(self._shell, options.rest), lambda value: value)

    def cell(self, line: str, cell: str) -> Any:
        """Runs `%%trace`. The value of the last expression is shown as always."""
        options = self._parse(line)
        if options.rest:
            raise _wrong(f"%%{self._name} records the cell below it: what is {options.rest!r} in its line?")
        code = Cell(self._shell, cell)
        is_quiet = self._shell.displayhook.semicolon_at_end_of_expression(cell)
        return self._run(options, code, _ignore if is_quiet else self._display)

    def report(self, line: str) -> None:
        """%stackweave_report [--height PIXELS] [--top] [--max-size SIZE] FILE

        Shows the report of a recording.
        """
        options = self._checked(parse_report, line)
        try:
            show(stackweave.open(os.path.expanduser(options.file)), options.view, title=os.path.basename(options.file))
        except (StackweaveError, OSError) as error:
            raise _wrong(str(error)) from None

    def _parse(self, line: str) -> CellRequest:
        return self._checked(lambda text: parse_cell(self._name, text), line)  # type: ignore[no-any-return]

    def _checked(self, parse: Any, line: str) -> Any:
        try:
            return parse(line)
        except WrongOption as error:
            raise _wrong(str(error)) from None

    def _display(self, value: object) -> None:
        if value is not None:
            self._shell.displayhook(value)

    def _run(self, options: CellRequest, cell: Cell, give: Any) -> Any:
        begun = self._begin(options)
        if cell.is_async:
            return self._run_async(options, cell, give, begun)
        begun.start()
        try:
            with begun.recorder:
                value = cell.run()
        except BaseException as error:
            self._end(options, begun)
            raise shown_without_us(self._shell, error) from error.__cause__
        given = give(value)
        self._end(options, begun)
        return given

    async def _run_async(self, options: CellRequest, cell: Cell, give: Any, begun: _Begun) -> Any:
        begun.start()
        try:
            with begun.recorder:
                value = await cell.run_async()
        except BaseException as error:
            self._end(options, begun)
            raise shown_without_us(self._shell, error) from error.__cause__
        given = give(value)
        self._end(options, begun)
        return given

    def _begin(self, options: CellRequest) -> _Begun:
        """Returns a recorder that can be started. It starts with the cell, so that nothing else is recorded."""
        path = options.output
        if path and os.path.exists(path) and not is_replaceable(path):
            raise _wrong(f"{path} exists and is not a recording: name another file with -o")
        folder = None if path else tempfile.TemporaryDirectory(prefix="stackweave-")
        try:
            where = path or os.path.join(folder.name, "cell.swv")  # type: ignore[union-attr]
            recorder = getattr(stackweave, self._name)(where, **options.recorder, overwrite=True)
            recorder._refuse_second()
            recorder._leave_out_callers()
        except (TypeError, ValueError, StackweaveError, OSError) as error:
            if folder is not None:
                folder.cleanup()
            raise _wrong(in_words_of_options(str(error), options.recorder)) from None
        return _Begun(recorder, folder)

    def _end(self, options: CellRequest, begun: _Begun) -> None:
        """Shows what was recorded. A failure is printed: the cell has run, and its result stays."""
        try:
            if not options.quiet:
                title = f"In [{number_of(self._shell)}]"
                show(
                    begun.recorder.recording,
                    options.view,
                    title=title,
                    texts=cells_of(self._shell),
                    kept=options.output,
                )
        except (StackweaveError, OSError) as error:
            print(f"stackweave: the recording can't be shown: {printable(str(error))}", file=sys.stderr)
        finally:
            begun.remove()


__all__ = ["load", "unload"]
