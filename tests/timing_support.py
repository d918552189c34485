"""What the tests of Timing share."""

import threading
from collections import Counter

import stackweave
from tests.recordings import RecordingCase, recording_of

#: A program that records to the path which it is given.
START = "import os, sys, threading, time, stackweave\ntiming = stackweave.Timing(sys.argv[1])\n"
#: Says which files of ours lie in the folder for temporary ones.
LEFT = "def left(): return os.listdir(os.environ['TMPDIR'])\n"


class FakeClock:
    """Nanoseconds that pass when they are told to, on each thread for itself."""

    def __init__(self, start=1_000_000_007):
        self._here = threading.local()
        self._start = start

    def __call__(self):
        return self._start + getattr(self._here, "passed", 0)

    def pass_(self, nanoseconds):
        self._here.passed = getattr(self._here, "passed", 0) + nanoseconds


def nanoseconds(seconds):
    """A number of nanoseconds that came as seconds: no part of one is lost or made up."""
    whole = round(seconds * 1e9)
    assert abs(seconds * 1e9 - whole) < 1e-3, seconds
    return whole


def table(stats):
    """The rows of a pstats.Stats: calls, primitive calls, own and total nanoseconds, by name."""
    return {
        name: (calls, primitive, nanoseconds(own), nanoseconds(total))
        for (_, _, name), (primitive, calls, own, total, _) in stats.stats.items()
    }


def callers(stats):
    """The edges of a pstats.Stats: the same numbers, by caller and called."""
    return {
        (caller, name): (calls, primitive, nanoseconds(own), nanoseconds(total))
        for (_, _, name), (_, _, _, _, edges) in stats.stats.items()
        for (_, _, caller), (calls, primitive, own, total) in edges.items()
    }


def exact_table(stats):
    """All that a pstats.Stats has, in nanoseconds."""
    return {
        function: (
            primitive,
            calls,
            nanoseconds(own),
            nanoseconds(total),
            {caller: (*edge[:2], nanoseconds(edge[2]), nanoseconds(edge[3])) for caller, edge in edges.items()},
        )
        for function, (primitive, calls, own, total, edges) in stats.stats.items()
    }


def shape(tree):
    """A call tree: total nanoseconds, calls and children by name."""
    return {
        child.name: (nanoseconds(child.total), child.calls, shape(child))
        for child in sorted(tree.children, key=lambda child: child.name)
    }


def told(timing):
    """The events in short: kind, name, details."""
    return [
        tuple(part for part in (event.kind, event.name, event.details or None) if part is not None)
        for event in recording_of(timing).events()
    ]


class Timed:
    """A Timing with a fake clock, and what is done with it, shorter."""

    def __init__(self, *arguments, **options):
        self.clock = FakeClock()
        self.timing = stackweave.Timing(*arguments, clock=self.clock, **options)

    def spend(self, name, own, *inner, after=0):
        """A phase that takes so long, then does the rest, then takes so long again."""
        self.timing.push(name)
        self.clock.pass_(own)
        for step in inner:
            step()
        self.clock.pass_(after)
        self.timing.pop()


def pairs(recording):
    """How often each phase was begun and ended, replayed as each thread did it. Raises where ends do not fit."""
    open_frames, whole = {}, Counter()
    for event in recording_of(recording).events():
        stack = open_frames.setdefault((event.process, event.thread), [])
        if event.role in ("begin", "open"):
            stack.append(event.name)
        elif event.role == "end":
            whole[stack.pop()] += 1
    return whole, [name for stack in open_frames.values() for name in stack]


class TimingCase(RecordingCase):
    """Has a Timing."""

    def setUp(self):
        super().setUp()
        self.timing = stackweave.Timing()
        self.addCleanup(self.timing.stop)

    def kinds(self):
        return [event[0] for event in told(self.timing)]
