"""Makes the native classes of the Dynamo profiler dataclasses for dataclasses.fields() and similar functions."""

from __future__ import annotations

import dataclasses

from ..._native import DynamoProfilerState, FunctionTraceTiming, ProfilerStackEntry

__all__ = ["DynamoProfilerState", "FunctionTraceTiming", "ProfilerStackEntry"]


@dataclasses.dataclass
class _TimingFields:
    func_name: str
    filename: str
    firstlineno: int
    cumtime_ns: int
    tottime_ns: int
    bytecode_count: int
    inline_depth: int
    caller_func_name: str | None = None
    caller_filename: str | None = None
    caller_firstlineno: int | None = None
    is_primitive_call: bool = True
    call_stack: tuple[tuple[str, str, int], ...] = ()


@dataclasses.dataclass
class _EntryFields:
    func_name: str
    filename: str
    firstlineno: int
    start_time_ns: int
    child_time_ns: int
    is_primitive_call: bool = True


def _describe(native: type, fields: type) -> None:
    for name in ("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__annotations__"):
        setattr(native, name, getattr(fields, name))


_describe(FunctionTraceTiming, _TimingFields)
_describe(ProfilerStackEntry, _EntryFields)
