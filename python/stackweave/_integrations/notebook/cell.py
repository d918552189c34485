"""Compiles and runs a cell as IPython does, without frames of IPython in the recorded stacks."""

from __future__ import annotations

import ast
import inspect
import os
from typing import TYPE_CHECKING, Any

from ... import _boundary
from ..._location import FOLDER

if TYPE_CHECKING:
    from types import CodeType, TracebackType

#: An InteractiveShell of IPython, which need not be installed.
Shell = Any

_OWN_FILES = FOLDER + os.sep


class Cell:
    """Compiled code that runs in the user's namespace."""

    def __init__(self, shell: Shell, source: str) -> None:
        self._namespace = shell.user_ns
        self._shell = shell
        transformed = shell.transform_cell(source)
        name = shell.compile.cache(transformed, number_of(shell), raw_code=source)
        try:
            tree = shell.compile.ast_parse(transformed, filename=name)
        except SyntaxError as error:
            raise _ShownSyntaxError(shell, error) from None
        self._codes = list(_codes(shell, shell.transform_ast(tree), name))

    @property
    def is_async(self) -> bool:
        return any(map(_is_async, self._codes))

    def run(self) -> Any:
        """Returns the value of the last expression, if that is shown."""
        value = None
        for code in self._codes:
            value = _boundary.run_code(code, self._namespace)
        return value

    async def run_async(self) -> Any:
        value = None
        for code in self._codes:
            value = _boundary.run_code(code, self._namespace)
            if _is_async(code):
                value = await _boundary.run_awaitable(value)
        return value


def number_of(shell: Shell) -> int:
    """Returns the number of the cell that runs: the shell may have counted to the next one already."""
    return int(shell.displayhook.prompt_count)


def awaits(shell: Shell, source: str) -> bool:
    """Returns whether a cell has an await outside of functions, and IPython allows it."""
    if not shell.autoawait or ("await" not in source and "async" not in source):
        return False
    try:
        tree = ast.parse(shell.transform_cell(source))
        return any(map(_is_async, _codes(shell, tree, "<cell>")))
    except SyntaxError:
        return False


def _is_async(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_COROUTINE)


def _codes(shell: Shell, tree: ast.Module, name: str) -> list[CodeType]:
    """Returns the codes to run in order. Only the last can be an expression, whose value is shown."""
    statements = list(tree.body)
    shown = shell.ast_node_interactivity
    parts: list[tuple[ast.AST, str]] = []
    if shown == "all":
        parts = [(ast.Interactive([each]), "single") for each in statements]
    elif statements:
        last = statements[-1]
        if shown == "last_expr_or_assign":
            value = _assigned(last)
            if value is not None:
                last = value
                statements.append(value)
        if isinstance(last, ast.Expr) and shown != "none":
            statements.pop()
            parts.append((ast.Expression(last.value), "eval"))
        if statements:
            parts.insert(0, (ast.Module(statements, []), "exec"))
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0
    with shell.compile.extra_flags(flags):
        return [shell.compile(part, name, mode) for part, mode in parts]


def _assigned(statement: ast.stmt) -> ast.Expr | None:
    """Returns the name that a statement assigns to, as an expression."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        target = statement.target
    else:
        return None
    if not isinstance(target, ast.Name):
        return None
    return ast.fix_missing_locations(ast.copy_location(ast.Expr(ast.Name(target.id, ast.Load())), statement))


def shown_without_us(shell: Shell, error: BaseException) -> BaseException:
    """Makes IPython show the traceback of an exception from the frame of the cell on."""
    if not hasattr(error, "_render_traceback_"):
        inside = _inside(error.__traceback__)

        def lines() -> Any:
            return shell.InteractiveTB.structured_traceback(type(error), error, inside, tb_offset=0)

        error._render_traceback_ = lines  # type: ignore[attr-defined]
    return error


def _inside(traceback: TracebackType | None) -> TracebackType | None:
    inner = traceback
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        inner = inner.tb_next
    return inner or traceback


class _ShownSyntaxError(Exception):
    """A SyntaxError of the cell, without the frames that compiled it."""

    def __init__(self, shell: Shell, error: SyntaxError) -> None:
        super().__init__(str(error))
        self._lines = shell.SyntaxTB.structured_traceback(type(error), error, [])

    def _render_traceback_(self) -> Any:
        return self._lines


_ShownSyntaxError.__name__ = _ShownSyntaxError.__qualname__ = "SyntaxError"
_ShownSyntaxError.__module__ = "builtins"
