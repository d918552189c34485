"""Unusual phases are recorded: deep, long and unfinished ones, and those in finalizers and signal handlers."""

import gc
import sys
import unittest
from collections import Counter

import stackweave
from tests.recordings import RecordingCase
from tests.support import run_on_oldest_and_newest
from tests.timing_support import START, event_tuples, pairs

setUpModule = run_on_oldest_and_newest


class Anomalies(RecordingCase):
    def test_nesting_of_100_000(self):
        depth = 100_000
        with stackweave.Timing() as timing:
            for number in range(depth):
                timing.push("deep", "f.py", number % 3)
            self.assertEqual(len(timing.open_phases()), depth)
            for _ in range(depth):
                timing.pop()
        self.assertFalse(timing.problems())
        rows = {line: row[:2] for (_, line, _), row in timing.recording.stats().stats.items()}
        self.assertEqual(rows, {line: (1, len(range(line, depth, 3))) for line in range(3)})

    def test_a_phase_around_100_000_that_are_left_open(self):
        with stackweave.Timing() as timing:
            with timing.phase("around"):
                for _ in range(100_000):
                    timing.push("left")
        self.assertEqual(timing.problems(), (0, 100_000, 0, 0))
        self.assertIn("'left' (100000 times)", timing.explain_problems()[0])
        self.assertEqual(pairs(timing), (Counter({"left": 100_000, "around": 1}), []))

    def test_any_text_is_a_name(self):
        names = ["", "é\N{SNOWMAN}", "\N{PILE OF POO}", "a\0b", "a\nb", "x" * 1_000_000, "<&>\"'"]
        with stackweave.Timing() as timing:
            for name in names:
                timing.push(name, name, 1)
                timing.pop()
            timing.push("lone \udc80 surrogate", "\ud800")
            timing.pop(text="\udfff")
        begun = [event.name for event in timing.recording.events() if event.role == "begin"]
        # A name that is cut keeps its beginning.
        for name, kept in zip(names, begun, strict=False):
            self.assertTrue(kept == name or (len(name) > 1000 and name.startswith(kept[:1000])), name[:20])
        self.assertEqual(len(begun), len(names) + 1)
        self.assertRegex(begun[-1], "^lone .* surrogate$")
        self.assertEqual(len(list(timing.recording.events())), 2 * len(begun))

    def test_details_that_do_not_fit(self):
        with stackweave.Timing() as timing:
            timing.push("a", text="x" * 1_000_000)
            with timing.phase("b") as phase:
                phase.note(text="y" * 1_000_000)
            timing.pop()
        self.assertEqual(pairs(timing), (Counter({"a": 1, "b": 1}), []))
        details = [event.details for event in timing.recording.events() if event.details]
        self.assertEqual([list(each) for each in details], [["omitted_bytes"]] * 2)

    def test_phases_leave_no_memory_behind(self):
        def work(rounds):
            for _ in rounds:
                timing.push("outer", "f.py", 3)
                timing.push("inner")
                timing.pop()
                timing.pop()

        with stackweave.Timing() as timing:
            rounds = [None] * 5000
            gc.disable()
            self.addCleanup(gc.enable)
            counts = []
            for _ in range(4):
                before = sys.getallocatedblocks()
                work(rounds)
                counts.append(sys.getallocatedblocks() - before)
        self.assertLess(min(counts), 5)

    def test_collections_of_garbage_in_the_middle(self):
        """Finalizers may run at any allocation. These record phases, too."""

        class Noisy:
            def __init__(self):
                self.cycle = self

            def __del__(self):
                timing.push("collected", "gc.py", 1, x=[1])
                timing.pop(y=2)

        before = gc.get_threshold()
        gc.set_threshold(1, 1, 1)
        self.addCleanup(gc.set_threshold, *before)
        with stackweave.Timing() as timing:
            for number in range(300):
                Noisy()
                with timing.phase(f"frame {number}", "f.py", number, values=[{}, []]) as phase:
                    phase.note(more=[number])
                    timing.push("inner", text=str(number))
                    timing.pop(done=[object()])
            gc.set_threshold(*before)
            gc.collect()
        whole, still_open = pairs(timing)
        self.assertEqual((whole["inner"], whole["collected"], still_open), (300, 300, []))
        self.assertFalse(timing.problems())

    def test_a_phase_around_the_yield_of_a_generator(self):
        def steps(name):
            with timing.phase(name):
                yield 1
                yield 2

        with stackweave.Timing() as timing:
            one, two = steps("one"), steps("two")
            for _ in range(2):
                next(one)
                next(two)
            one.close()  # "two" started inside it.
            two.close()
            three = steps("three")
            next(three)
            del three
        self.assertEqual(timing.problems(), (0, 1, 0, 1))
        self.assertEqual(pairs(timing), (Counter({"one": 1, "two": 1, "three": 1}), []))

    def test_signal_handlers_record_phases(self):
        script = """
import signal
def handler(number, frame):
    timing.push("handler")
    timing.pop()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for number in range(300_000):
    timing.push("work", "f.py", number % 5)
    timing.pop()
signal.setitimer(signal.ITIMER_REAL, 0)
assert not timing.problems(), timing.problems()
"""
        self.run_script(START + script)
        whole, still_open = pairs(stackweave.open(self.path))
        self.assertEqual((whole["work"], still_open), (300_000, []))
        self.assertGreater(whole["handler"], 0)

    def test_an_unhandled_exception(self):
        script = START + "with timing.phase('a'):\n    timing.push('b')\n    1 / 0\n"
        self.run_script(script, status=1, stderr="Traceback .*ZeroDivisionError.*\n")
        events = event_tuples(stackweave.open(self.path))
        self.assertEqual(events[:3], [("begin", "a"), ("begin", "b"), ("end-left-open",)])
        self.assertEqual(events[3], ("end-failed", {"error": "ZeroDivisionError: division by zero"}))
        self.assertEqual(events[4][:2], ("instant-with", "unhandled exception"))


if __name__ == "__main__":
    unittest.main()
