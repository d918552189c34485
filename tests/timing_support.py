"""Shared by the tests of Timing."""

import threading
from collections import Counter

import stackweave
from tests.recordings import RecordingCase, recording_of

#: The first lines of a program that records phases to the path in its first argument.
START = "import os, sys, threading, time, stackweave\ntiming = stackweave.Timing(sys.argv[1])\n"
#: Defines a function that lists the folder for temporary files.
LEFT = "def left(): return os.listdir(os.environ['TMPDIR'])\n"


class FakeClock:
    """A clock in nanoseconds. Each thread has its own time, which only pass_() changes."""

    def __init__(self, start=1_000_000_007):
        self._here = threading.local()
        self._start = start

    def __call__(self):
        return self._start + getattr(self._here, "passed", 0)

    def pass_(self, nanoseconds):
        self._here.passed = getattr(self._here, "passed", 0) + nanoseconds


def nanoseconds(seconds):
    """Converts seconds to nanoseconds, and checks that they are a whole number of these."""
    whole = round(seconds * 1e9)
    assert abs(seconds * 1e9 - whole) < 1e-3, seconds
    return whole


def table(stats):
    """Returns the rows of a pstats.Stats by name: calls, primitive calls, self and total nanoseconds."""
    return {
        name: (calls, primitive, nanoseconds(self_time), nanoseconds(total))
        for (_, _, name), (primitive, calls, self_time, total, _) in stats.stats.items()
    }


def callers(stats):
    """Returns the edges of a pstats.Stats by caller and callee: the same numbers."""
    return {
        (caller, name): (calls, primitive, nanoseconds(self_time), nanoseconds(total))
        for (_, _, name), (_, _, _, _, edges) in stats.stats.items()
        for (_, _, caller), (calls, primitive, self_time, total) in edges.items()
    }


def exact_table(stats):
    """Returns all numbers of a pstats.Stats, with its times in nanoseconds."""
    return {
        function: (
            primitive,
            calls,
            nanoseconds(self_time),
            nanoseconds(total),
            {caller: (*edge[:2], nanoseconds(edge[2]), nanoseconds(edge[3])) for caller, edge in edges.items()},
        )
        for function, (primitive, calls, self_time, total, edges) in stats.stats.items()
    }


def shape(tree):
    """Returns the children of a call tree by name: total nanoseconds, calls and their own children."""
    return {
        child.name: (nanoseconds(child.total), child.calls, shape(child))
        for child in sorted(tree.children, key=lambda child: child.name)
    }


def event_tuples(timing):
    """Returns each event as a tuple of its kind, its name and its details, where it has them."""
    return [
        tuple(part for part in (event.kind, event.name, event.details or None) if part is not None)
        for event in recording_of(timing).events()
    ]


class Timed:
    """A Timing with a fake clock, and a short way to record phases with it."""

    def __init__(self, *arguments, **options):
        self.clock = FakeClock()
        self.timing = stackweave.Timing(*arguments, clock=self.clock, **options)

    def spend(self, name, before, *inner, after=0):
        """Records a phase: nanoseconds that pass, then the inner steps, then more nanoseconds."""
        self.timing.push(name)
        self.clock.pass_(before)
        for step in inner:
            step()
        self.clock.pass_(after)
        self.timing.pop()


def pairs(recording):
    """Replays the events of each thread. Returns how often each phase ended, and the phases that are still open.

    Raises if a phase ends that has not started.
    """
    open_phases, whole = {}, Counter()
    for event in recording_of(recording).events():
        stack = open_phases.setdefault((event.process, event.thread), [])
        if event.role in ("begin", "open"):
            stack.append(event.name)
        elif event.role == "end":
            whole[stack.pop()] += 1
    return whole, [name for stack in open_phases.values() for name in stack]


class TimingCase(RecordingCase):
    """A test with a Timing."""

    def setUp(self):
        super().setUp()
        self.timing = stackweave.Timing()
        self.addCleanup(self.timing.stop)

    def kinds(self):
        return [event[0] for event in event_tuples(self.timing)]
