"""Records each compilation as a run, with what torch knows about it at the end."""

from __future__ import annotations

import sys
from types import CodeType
from typing import TYPE_CHECKING, Any

from .tracing import name_of
from .watch import LONGEST_MESSAGE, RUN, Open, Watch, first_line, quiet

if TYPE_CHECKING:
    from collections.abc import Callable

    _Function = Callable[..., Any]

#: The file of torch's function that calls the compiled one.
_WRAPPER = "torch/_dynamo/external_utils.py"
#: The metrics of torch that are recorded, and their names here. Any may be missing.
METRICS = {
    "recompile_reason": "recompile_reason",
    "restart_reasons": "restart_reasons",
    "fail_type": "fail_type",
    "fail_reason": "fail_reason",
    "graph_op_count": "graph_ops",
    "graph_node_count": "graph_nodes",
    "graph_input_count": "graph_inputs",
    "guard_count": "guards",
    "num_graph_breaks": "graph_breaks",
    "accumulated_cache_size": "cache_entries",
    "has_guarded_code": "has_code",
    "inductor_fx_local_cache_hit_count": "fx_cache_hits",
    "inductor_fx_local_cache_miss_count": "fx_cache_misses",
    "aotautograd_local_cache_hit_count": "aot_cache_hits",
    "aotautograd_local_cache_miss_count": "aot_cache_misses",
}


@quiet
def begin_compile(watch: Watch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Open:
    code = compiled_code(args[0] if args else kwargs["code"], args[4] if len(args) > 4 else kwargs.get("closure"))
    compile_id = kwargs.get("compile_id")
    compile_id = None if compile_id is None else str(compile_id)
    name = name_of(code)
    watch.compiled[compile_id] = (name, code.co_filename, code.co_firstlineno)
    run = watch.timing.run(
        f"compile {name}",
        code.co_filename,
        code.co_firstlineno,
        compile_id=compile_id,
        function=name,
        direction="forward",
        backend=backend_of(args[5] if len(args) > 5 else kwargs.get("compiler_fn")),
    )
    begun = watch.begin(RUN, compile_id, run)
    begun.last_metrics = next(reversed(recorded_metrics()), None)
    return begun


def compiled_code(code: CodeType, closure: Any) -> CodeType:
    """Returns the code that is compiled. Torch wraps some modules and functions in a function that only calls them."""
    if code.co_freevars != ("fn",) or not code.co_filename.endswith(_WRAPPER) or not closure:
        return code
    wrapped = closure[0].cell_contents
    function = getattr(type(wrapped), "forward", wrapped)
    inner = getattr(getattr(function, "__func__", function), "__code__", None)
    return inner if isinstance(inner, CodeType) else code


def backend_of(compiler: Any) -> str | None:
    """Returns the name of a backend, which torch may have wrapped."""
    for _ in range(8):
        inner = [getattr(compiler, name, None) for name in ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")]
        if inner == [None, None]:
            break
        compiler = inner[0] or inner[1]
    name = getattr(compiler, "compiler_name", None) or getattr(compiler, "__name__", None)
    return name if isinstance(name, str) else None


@quiet
def end_compile(watch: Watch, begun: Open, error: BaseException | None, result: Any) -> None:
    details = dict(begun.details)
    try:
        details = {**metrics_of(begun), **details}
        skipped = getattr(result, "skip_reason", None)
        if skipped:
            details["skipped"] = first_line(skipped)
    finally:
        watch.end(begun, error, **details)


def metrics_of(begun: Open) -> dict[str, Any]:
    """Returns the metrics of torch for this compilation: none if it was part of another one."""
    for row in reversed(recorded_metrics()):
        if row is begun.last_metrics:
            break
        if getattr(row, "compile_id", None) == begun.key:
            known = ((ours, getattr(row, of_torch, None)) for of_torch, ours in METRICS.items())
            return {name: _plain(name, value) for name, value in known if _is_recorded(name, value)}
    return {}


def recorded_metrics() -> list[Any]:
    """Returns torch's metrics of the last compilations."""
    recorded = getattr(sys.modules.get("torch._dynamo.utils"), "get_compilation_metrics", None)
    return [] if recorded is None else list(recorded())


def _is_recorded(name: str, value: object) -> bool:
    """Returns whether a metric is recorded: counts of unused caches are not."""
    return value not in (None, "", set()) and not (value == 0 and name.endswith(("_hits", "_misses")))


def _plain(name: str, value: object) -> object:
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (set, frozenset, list, tuple)):
        return [first_line(each) for each in sorted(value, key=str)]
    return first_line(value) if name == "fail_reason" else " ".join(str(value).split())[:LONGEST_MESSAGE]


def compiling(watch: Watch, original: _Function) -> _Function:
    """Replaces convert_frame._compile."""

    def _compile(*args: Any, **kwargs: Any) -> Any:
        if not watch.is_on:
            return original(*args, **kwargs)
        begun = begin_compile(watch, args, kwargs)
        if isinstance(kwargs.get("skip"), int):
            kwargs["skip"] += 1  # torch logs the stack of the program, and skips this many frames
        result = error = None
        try:
            result = original(*args, **kwargs)
            return result
        except BaseException as raised:
            error = raised
            raise
        finally:
            if begun is not None:
                end_compile(watch, begun, error, result)
            del error

    return _compile
