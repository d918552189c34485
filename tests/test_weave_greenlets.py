"""Greenlets swap the C stack and the Python stack. A capture sees those of the running one."""

import functools
import unittest

import stackweave
from tests.support import WitnessCase, python_frames

try:
    from greenlet import getcurrent, greenlet
except ImportError:
    greenlet = None


@unittest.skipIf(greenlet is None, "greenlet is not installed")
class Greenlets(WitnessCase):
    def assert_seen(self, at_least):
        """Asserts that frames are those of the running greenlet, and none is outside of the outermost native one."""
        self.assertGreaterEqual(len(self.witness.seen), at_least)
        for captured, extracted in self.witness.seen:
            expected = [(frame.filename, frame.lineno, frame.name) for frame in reversed(extracted)]
            self.assertEqual(python_frames(captured), expected)
            self.assertEqual(captured.frames[-1].kind, "native", captured.stop_reason)

    def test_a_running_greenlet_shows_its_own_frames(self):
        def work(rounds):
            for _ in range(rounds):
                self.witness()
                getcurrent().parent.switch()
            return self.witness()

        greenlets = [greenlet(work) for _ in range(3)]
        for _ in range(5):
            for each in greenlets:
                each.switch(4)
                self.witness()
        self.assertTrue(all(each.dead for each in greenlets))
        self.assert_seen(30)

    def test_native_callbacks_in_a_greenlet_stand_in_order(self):
        def key(value):
            captures.append(stackweave.capture())
            getcurrent().parent.switch()
            captures.append(stackweave.capture())
            return value

        def work():
            return sorted([2, 1], key=key)

        captures = []
        running = greenlet(work)
        while not running.dead:
            running.switch()
        self.assertEqual(len(captures), 4)
        for captured in captures:
            names = [frame.name for frame in captured.frames]
            between = captured.frames[names.index("key") + 1 : names.index("work")]
            self.assertGreaterEqual(len(between), 2, "the sort and the eval loop that runs key")
            self.assertEqual({frame.kind for frame in between}, {"native"})

    def test_nested_greenlets_and_deep_stacks_agree(self):
        def descend(depth, then):
            if depth == 0:
                self.witness()
                return then()
            return functools.reduce(lambda _, __: descend(depth - 1, then), [1], None)

        def nested(levels):
            if levels == 0:
                return self.witness()
            descend(levels * 5, lambda: greenlet(nested).switch(levels - 1))
            return self.witness()

        nested(4)
        self.assert_seen(9)

    def test_an_exception_thrown_into_a_greenlet_agrees(self):
        def work():
            try:
                getcurrent().parent.switch()
            except KeyError:
                self.witness()

        running = greenlet(work)
        running.switch()
        running.throw(KeyError())
        self.witness()
        self.assert_seen(2)
