"""A Python signal handler that runs while C code runs is inside that C code."""

import signal
import unittest

import stackweave
from tests.support import WitnessCase


@unittest.skipUnless(hasattr(signal, "setitimer"), "there are no timers")
class Timers(WitnessCase):
    def setUp(self):
        super().setUp()
        self.captures = []
        previous = signal.signal(signal.SIGALRM, self.handle)
        self.addCleanup(signal.signal, signal.SIGALRM, previous)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def handle(self, _number, frame):
        self.captures.append((stackweave.capture(), frame.f_code.co_name))
        self.witness()

    def test_handlers_that_interrupt_a_sort_stand_inside_it(self):
        def key(value):
            total = 0
            for number in range(20):
                total += number
            return (value * 7919) % 1009 + total

        def sort():
            return sorted(range(500), key=key)

        while sum(interrupted == "key" for _, interrupted in self.captures) < 20:
            signal.setitimer(
                signal.ITIMER_REAL, 0.0002
            )  # Once, because a handler may take longer than the next interval.
            sort()
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assert_same_stacks(20)
        for captured, interrupted in self.captures:
            if interrupted == "key":
                self.assert_inside_the_sort(captured)

    def assert_inside_the_sort(self, captured):
        names = [frame.name for frame in captured.frames]
        self.assertEqual(names[0], "handle")
        key, sort = names.index("key"), names.index("sort")
        handling, sorting = captured.frames[1:key], captured.frames[key + 1 : sort]
        self.assertGreaterEqual(len(handling), 2, "the handler's eval loop and what called it")
        self.assertEqual({frame.kind for frame in handling}, {"native"})
        self.assertGreaterEqual(len(sorting), 2, "the sort and the eval loop that runs key")
        self.assertEqual({frame.kind for frame in sorting}, {"native"})
