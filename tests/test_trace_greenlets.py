"""Each greenlet has a separate stack, and so have its spans."""

import unittest

from tests.trace_support import TraceCase

try:
    import greenlet
except ImportError:
    greenlet = None


def leaf():
    return None


@unittest.skipIf(greenlet is None, "greenlet is not installed")
class Greenlets(TraceCase):
    def test_they_have_spans_of_their_own(self):
        def ping(count):
            for _ in range(count):
                leaf()
                pong_let.switch()

        def pong():
            while True:
                inner()

        def inner():
            leaf()
            ping_let.switch()

        for mechanism in self.each_mechanism():

            def main():
                ping_let.switch(3)

            ping_let, pong_let = greenlet.greenlet(ping), greenlet.greenlet(pong)
            replay = self.replay(self.trace(main, mechanism=mechanism))
            calls = {
                name: [span for span in replay.called(name) if span.kind != "open"]
                for name in ("ping", "pong", "inner", "leaf")
            }
            self.assertEqual(
                {name: len(spans) for name, spans in calls.items()}, {"ping": 1, "pong": 1, "inner": 3, "leaf": 6}
            )
            for span in replay.walk():
                inside = {each.name for each in span.walk()}
                if span.name == "ping":
                    self.assertNotIn("inner", inside)
                if span.name == "pong":
                    self.assertNotIn("ping", inside)
            pong_let.throw()

    def test_random_switches_keep_every_stack(self):
        import random

        chance = random.Random(20261115)
        runners = []

        def switch():
            others = [each for each in runners if not each.dead and each is not greenlet.getcurrent()]
            if others:
                chance.choice(others).switch()

        def recurse(number, depth):
            leaf()
            if depth and chance.random() < 0.8:
                switch()
                recurse(number, depth - 1)
                switch()

        def runs_alone(number):
            for _ in range(5):
                recurse(number, 6)

        def main():
            runners[:] = [greenlet.greenlet(lambda number=number: runs_alone(number)) for number in range(4)]
            while any(not runner.dead for runner in runners):
                switch()

        for mechanism in self.each_mechanism():
            replay = self.replay(self.trace(main, mechanism=mechanism))
            for span in replay.called("runs_alone"):
                runs = sum(1 for each in span.walk() if each.name == "runs_alone")
                self.assertEqual(runs, 1, "one greenlet does not run inside another")
            self.assertEqual(sum(span.kind != "open" for span in replay.called("runs_alone")), 4)
