"""The options of all recorders. Signatures repeat the names and defaults, and a test compares them with this table."""

from __future__ import annotations

from .kinds import Choice, Choices, Count, Duration, Flag, Patterns, Seconds, Size
from .option import Group, Option
from .special_kinds import Demotion, Logs, Part, Ring, Signal

#: When a ring, or a snapshot of memory, is written.
MOMENTS = ("exit", "exception")
MOMENTS_OF_MEMORY = (*MOMENTS, "memory-error")

BUFFER = Option("buffer", Size(), "64MiB", "keep at most this much in memory before it is written")
WHEN_FULL = Option(
    "when_full", Choice("block", "drop"), "block", "if the buffer is full, wait, or leave out events and count them"
)
RING = Option("ring", Ring(), None, "keep only the last bytes, seconds, or both: 64MB,30")
DUMP_ON = Option(
    "dump_on", Choices(*MOMENTS, metavar="MOMENTS"), MOMENTS, "write the ring at these moments", is_native=False
)
DUMP_MEMORY_ON = Option(
    "dump_on",
    Choices(*MOMENTS_OF_MEMORY, metavar="MOMENTS"),
    MOMENTS_OF_MEMORY,
    "write a snapshot, and the ring, at these moments",
    is_native=False,
)
PROCESSES = (
    Option("flush_every", Seconds(), 0.2, "write to the file at this interval"),
    Option("follow_forks", Flag(), True, "do not record forked children"),
    Option("subprocesses", Flag(), False, "record the Python programs that it starts, too"),
    Option("overwrite", Flag(), False, "replace an existing file"),
)
IF_BUSY = Option(
    "if_busy",
    Choice("raise", "skip"),
    "raise",
    "while another recorder records the same, raise an error, or record nothing",
    is_native=False,
    in_commands=False,
)

CALLS = Group(
    "Which calls are recorded",
    (
        Option(
            "include",
            Patterns(),
            (),
            "record only these functions; may be repeated",
            'parts of names, or `"module:json"`, `"file:*/models/*.py"`, `"function:Model.*"`; `"function:=f"` is'
            " exactly `f`",
        ),
        Option("exclude", Patterns(), (), "do not record these functions; may be repeated"),
        Option("min_duration", Duration(), 0.0, "leave out calls that take less than this", '`"10us"`, `"1.5 ms"`'),
        Option("max_depth", Count(), None, "leave out calls deeper than this many levels"),
        Option("max_events", Count(63), None, "record at most this many events, and count the rest"),
        Option(
            "demote",
            Demotion(),
            None,
            "stop tracing functions that are called often and take almost no time: after CALLS calls that take less"
            " than TIME on average (10000,1us)",
        ),
        Option(
            "mechanism",
            Choice("auto", "monitoring", "eval", "profile", metavar="NAME"),
            "auto",
            "let the interpreter report calls by this mechanism: auto, monitoring, eval or profile",
            "[below](#mechanisms)",
        ),
    ),
)
EVENTS = Group(
    "What else is recorded with calls",
    (
        Option("c_calls", Flag(), False, "record calls of functions that are written in C"),
        Option(
            "arguments",
            Patterns("FUNCTION"),
            (),
            "record the argument values of this function: pkg.module.function; may be repeated",
            is_native=False,
        ),
        Option(
            "native_stacks",
            Patterns("FUNCTION"),
            (),
            "record native stacks where this function is called; may be repeated",
            is_native=False,
        ),
        Option(
            "logs",
            Logs(),
            None,
            "record log records: all, those of a logger, those from a level on, or LOGGER,LEVEL",
            is_native=False,
        ),
        Option("gc", Flag(), True, "do not record garbage collections", is_native=False),
        Option("tasks", Flag(), True, "do not record the names of asyncio tasks"),
        Option("torch", Flag(), True, "do not record the names of torch modules and optimizers", is_native=False),
    ),
)
MEMORY_MODE = (
    Option(
        "mode",
        Choice("history", "aggregate", "sampled", metavar="MODE"),
        "history",
        "record each event (history), only figures for each stack (aggregate), or some allocations (sampled)",
    ),
    Option(
        "sample_every",
        Size(),
        None,
        "record one allocation per SIZE bytes on average, with the mode sampled; figures are estimates (512KiB)",
    ),
)
NATIVE = Option("native", Flag(), True, "record stacks of Python frames only")
FREE_STACKS = Option("free_stacks", Flag(), False, "record the stacks that free memory, too")
MEMORY_FIGURES = (
    Option("depth", Count(), None, "record at most this many frames of each stack, from the innermost"),
    Option(
        "temporary",
        Count(),
        1,
        "count a block as temporary if it is freed before this many other allocations of its thread",
    ),
    Option("curve_every", Seconds(), 0.02, "record the size of memory at this interval"),
)
MEMORY = Group(
    "How memory is recorded",
    (
        *MEMORY_MODE,
        Option("python_allocators", Flag(), False, "record each object of Python's own allocator, too"),
        NATIVE,
        Option("mappings", Flag(), True, "do not record mappings of mmap"),
        FREE_STACKS,
        *MEMORY_FIGURES,
    ),
)
SNAPSHOTS = Group(
    "When a snapshot of memory is written, besides at the end",
    (
        Option("dump_signal", Signal(), None, "write a snapshot when this signal arrives: USR1"),
        Option("dump_at_rss", Size(), None, "write a snapshot when the process has grown to this size"),
    ),
)
OF_CALLS = CALLS.options + EVENTS.options
OF_MEMORY = MEMORY.options + SNAPSHOTS.options
PARTS = Group(
    "What is recorded",
    (
        Option("calls", Part(OF_CALLS), True, "record memory only", is_native=False),
        Option("memory", Part(OF_MEMORY), True, "record calls only", is_native=False),
    ),
)
PHASES = Group(
    "What is recorded and shown",
    (Option("phases", Flag(), True, "record only what Dynamo traces, not the phases after it", is_native=False),),
)


def _writing(buffer: str, *ring: Option) -> tuple[Option, ...]:
    """Returns the options for how the file is written, and which processes are recorded."""
    return (BUFFER._replace(default=buffer), WHEN_FULL, *ring, *PROCESSES)


#: How files are written by each of them.
WRITE = _writing("64MiB", RING, DUMP_ON)
#: A larger buffer is not faster, and is memory of the measured program.
WRITE_MEMORY = _writing("8MiB", RING, DUMP_MEMORY_ON)
#: More than memory alone has: a burst of calls need not wait.
WRITE_BOTH = _writing("32MiB", RING, DUMP_MEMORY_ON)
WRITE_PHASES = _writing("64MiB")

#: The options of the recorders.
TRACE = (*OF_CALLS, *WRITE, IF_BUSY)
MEMORY_RECORDER = (*OF_MEMORY, *WRITE_MEMORY, IF_BUSY)
RECORD = (*PARTS.options, *WRITE_BOTH, IF_BUSY)
DYNAMO = (*PHASES.options, *WRITE_PHASES)
CUDA_OF_MEMORY = (NATIVE, FREE_STACKS._replace(default=True), *MEMORY_FIGURES)
CUDA_MEMORY = (
    *CUDA_OF_MEMORY,
    Option("host_memory", Flag(), False, "record the memory of the process, too", is_native=False),
    Option("oom_dumps", Count(least=0), 4, "write at most so many snapshots when a device is out of memory"),
    *(option for option in WRITE_MEMORY if option.name != "subprocesses"),
    IF_BUSY,
)
