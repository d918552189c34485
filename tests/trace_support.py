"""Shared by the tests of the trace recorder: traces, their spans and counts, and other profilers to compare with."""

import contextlib
import cProfile
import gc
import importlib
import itertools
import sys
import threading
from collections import Counter
from typing import NamedTuple

import stackweave
from tests.recordings import RecordingCase, recording_of

#: The mechanisms by which this Python can report calls, the usual one first.
MECHANISMS = ("monitoring", "profile") if sys.version_info >= (3, 12) else ("eval", "profile")
#: The first lines of programs that run in a separate process.
BEGIN = """
import os, signal, sys, threading, time, warnings
import stackweave

def leaf():
    return None

def down(depth, then):
    return down(depth - 1, then) if depth else then()

def trace(**options):
    return stackweave.trace(sys.argv[1], **options)
"""
#: The file of native functions, for cProfile and for traces.
NO_FILE = "~"


def key_of(file, line, name):
    """Returns a function by file, line and name. cProfile has no qualified names, and 3.10 has none at all."""
    return (file, line, name if file == NO_FILE else name.rpartition(".")[2])


def key_of_code(code):
    return key_of(code.co_filename, code.co_firstlineno, code.co_name)


class Counts:
    """The calls of each function, and those from each caller: all calls, and the primitive ones among them."""

    def __init__(self):
        self.functions = {}
        self.edges = {}

    def add(self, table, key, calls, primitive):
        before = table.get(key, (0, 0))
        table[key] = (before[0] + calls, before[1] + primitive)

    def of(self, *files):
        """Returns the counts of the functions of these files, by their names."""
        functions = {key[2]: counts for key, counts in self.functions.items() if key[0] in files}
        return functions, {
            (caller[2], callee[2]): counts for (caller, callee), counts in self.edges.items() if callee[0] in files
        }

    @classmethod
    def from_stats(cls, stats):
        """Returns counts without functions that were only open: a profiler sees neither them nor calls from them."""
        counts = cls()
        called = {key for key, (_primitive, calls, _own, _total, _callers) in stats.stats.items() if calls}
        for function, (primitive, calls, _own, _total, callers) in stats.stats.items():
            if function in called:
                counts.add(counts.functions, key_of(*function), calls, primitive)
            for caller, (calls, primitive, _own, _total) in callers.items():
                if caller in called and calls:
                    counts.add(counts.edges, (key_of(*caller), key_of(*function)), calls, primitive)
        return counts

    @classmethod
    def from_profiler(cls, entries, key):
        """Returns the counts of getstats() of cProfile. `key` returns the key of code, or None to leave it out."""
        counts = cls()
        for entry in entries:
            caller = key(entry.code)
            if caller is None:
                continue
            counts.add(counts.functions, caller, entry.callcount, entry.callcount - entry.reccallcount)
            for called in entry.calls or ():
                callee = key(called.code)
                if callee is not None:
                    primitive = called.callcount - called.reccallcount
                    counts.add(counts.edges, (caller, callee), called.callcount, primitive)
        return counts


class Reference:
    """Counts the calls of all threads by a profile function in Python, and records their order."""

    def __init__(self):
        self.counts = Counts()
        self.sequences = {}

    def __call__(self, frame, event, _argument):
        if frame.f_code is Reference.watch.__code__:
            return
        stack, sequence = self.sequences.setdefault(threading.get_ident(), ([], []))
        key = key_of_code(frame.f_code)
        if event == "call":
            counts = self.counts
            counts.add(counts.functions, key, 1, key not in stack)
            if stack:
                edge = (stack[-1], key)
                counts.add(counts.edges, edge, 1, edge not in itertools.pairwise(stack))
            stack.append(key)
            sequence.append(key[2])
        elif event == "return" and stack:
            stack.pop()
            sequence.append(None)

    def watch(self, function):
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            function()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


class Span(NamedTuple):
    name: str
    #: The function, by file, line and name.
    key: tuple
    kind: str
    begin: int
    end: int
    children: list
    #: The generator or coroutine to which it belongs.
    object: object
    caller: object
    thread: int
    #: How it ended: "end", "yield", "raise"; None if it did not.
    ending: object

    def walk(self):
        """Iterates over the span and all spans inside it, in the order of their starts."""
        left = [self]
        while left:
            span = left.pop()
            yield span
            left.extend(reversed(span.children))

    @property
    def shape(self):
        """Returns the names of the span and of those inside it; only its name if there are none inside it."""
        return (self.name, *(child.shape for child in self.children)) if self.children else self.name


class Open:
    """A span that has not ended yet."""

    def __init__(self, event):
        self.event, self.children = event, []

    def close(self, time, ending):
        event = self.event
        frame = event.frame
        return Span(
            event.name.rpartition(".")[2] if frame is None or frame.kind == "python" else event.name,
            key_of(frame.filename, frame.firstlineno, frame.name) if frame is not None else (None, None, event.name),
            event.kind,
            event.time_ns,
            time,
            self.children,
            event.values.get("object"),
            getattr(event, "caller", None),
            event.thread,
            ending,
        )


OPENING = ("begin", "resume", "open")


class Replay:
    """The spans of each thread. Fails if time goes back or, unless events were lost, if an end has no start."""

    def __init__(self, events, is_whole=True):
        self.is_whole = is_whole
        self.roots, self.stacks, self.instants, last = {}, {}, [], {}
        #: The number of open spans by the last event of a thread, if that event states what is open.
        self.known_depths = {}
        for event in events:
            time = event.time_ns
            assert time >= last.get(event.thread, time), f"{event} is before the one that it follows"
            last[event.thread] = time
            self.add(event)
        self.unfinished = {
            thread: [each.event.name for each in stack] for thread, stack in self.stacks.items() if stack
        }
        for thread, stack in self.stacks.items():
            while stack:
                self.end(thread, last[thread], None)

    def add(self, event):
        stack = self.stacks.setdefault(event.thread, [])
        self.roots.setdefault(event.thread, [])
        depth = int(event.values["depth"]) if event.role == "open" else None
        known = self.known_depths.pop(event.thread, None)
        if known is not None and depth != known:
            self.end_inside(event, known)
        if depth is not None:
            assert depth <= len(stack), f"{event.name} is open at {depth}, where {len(stack)} spans are"
            if event.name is None:
                return self.end_inside(event, depth)
            self.known_depths[event.thread] = depth + 1
            if depth < len(stack):
                if stack[depth].event.name == event.name:
                    return None
                self.end_inside(event, depth)
        if event.role in OPENING:
            stack.append(Open(event))
        elif event.role == "end":
            assert stack or not self.is_whole, f"{event.kind} without a start at {event.time_ns}"
            if stack:
                self.end(event.thread, event.time_ns, event.kind)
        elif event.role in ("instant", "counter"):
            self.instants.append((event.name, [each.event.name for each in stack]))
        return None

    def end_inside(self, event, depth):
        while len(self.stacks[event.thread]) > depth:
            self.end(event.thread, event.time_ns, None)

    def end(self, thread, time, ending):
        stack = self.stacks[thread]
        span = stack.pop().close(time, ending)
        (stack[-1].children if stack else self.roots[thread]).append(span)

    def walk(self, thread=None):
        for number, roots in self.roots.items():
            if thread in (None, number):
                for root in roots:
                    yield from root.walk()

    def called(self, name):
        return [span for span in self.walk() if span.name == name]


def load(name):
    return importlib.import_module(f"tests.trace_programs.{name}")


@contextlib.contextmanager
def no_collections():
    """Switches garbage collections off: they come at any time, and run finalizers."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def profile(function, builtins=False):
    """Returns what cProfile counts while a function runs."""
    with no_collections():
        profiler = cProfile.Profile(builtins=builtins)
        profiler.enable()
        function()
        profiler.disable()
    return profiler.getstats()


def reference(function):
    watching = Reference()
    with no_collections():
        watching.watch(function)
    return watching


class TraceCase(RecordingCase):
    """Records traces, with each mechanism of this Python if needed."""

    def tracing(self, **options):
        trace = stackweave.trace(self.path, overwrite=True, **options)
        self.addCleanup(lambda: trace.state in ("recording", "paused") and trace.stop())
        return trace

    def trace(self, function, **options):
        """Returns the trace of one call."""
        with no_collections(), self.tracing(**{"gc": False, **options}) as trace:
            function()
        return trace

    def replay(self, trace, **selection):
        replay = Replay(recording_of(trace).events(**selection))
        self.assertEqual(replay.unfinished, {}, "all spans end with the trace")
        return replay

    #: The mechanism that is tested; messages of failures name it.
    mechanism = "auto"

    def each_mechanism(self):
        for self.mechanism in MECHANISMS:
            yield self.mechanism
        self.mechanism = "auto"

    def each_complete_mechanism(self):
        """Leaves the evaluation hook out where CPython does not call it for each frame, as early 3.11 by default."""
        usual = self.trace(lambda: None).tracer_stats()["mechanism"]
        return (mechanism for mechanism in self.each_mechanism() if mechanism != "eval" or usual == "eval")

    def _formatMessage(self, msg, standardMsg):
        return f"{super()._formatMessage(msg, standardMsg)} (mechanism: {self.mechanism})"


def multiset(values):
    return dict(Counter(values))


def of_program(replay, name):
    """Returns the calls of a function of a program that was given as text."""
    return [span for span in replay.called(name) if span.key[0] == "<string>"]
