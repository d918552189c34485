"""With if_busy="skip", a recording that starts while another one records the same is left out, without an error."""

import asyncio
import os
import threading

import stackweave
from tests.recordings import RecordingCase

KINDS = (stackweave.trace, stackweave.memory, stackweave.record)


def traced_work():
    return sum(range(10))


class Skipped(RecordingCase):
    def other(self):
        return os.path.join(self.folder, "other.swv")

    def test_it_records_nothing_and_its_state_says_so(self):
        for first in KINDS:
            for second in (first, stackweave.record):
                with self.subTest(first=first.__name__, second=second.__name__), first(self.path, overwrite=True):
                    with second(self.other(), if_busy="skip") as skipped:
                        self.assertEqual(skipped.state, "skipped")
                        with skipped.span("left out"):
                            skipped.instant("left out", number=1)
                        skipped.counter("left out", 1)
                        skipped.pause()
                        skipped.resume()
                        skipped.flush()
                    summary = skipped.stop()
                    self.assertEqual((skipped.state, summary.events, summary.error), ("skipped", 0, None))
                    self.assertEqual((skipped.path, summary.path), (self.other(), self.other()))
                    self.assertIn("skipped", repr(skipped))
                    with self.assertRaisesRegex(
                        stackweave.StateError, "nothing was recorded: another recorder was active"
                    ):
                        skipped.recording.info()
                    self.assertFalse(os.path.exists(self.other()))

    def test_a_file_of_an_earlier_run_is_left_alone(self):
        with open(self.other(), "w") as file:
            file.write("earlier")
        with stackweave.trace(self.path), stackweave.trace(self.other(), overwrite=True, if_busy="skip"):
            pass
        with open(self.other()) as file:
            self.assertEqual(file.read(), "earlier")

    def test_it_can_be_started_when_the_other_has_ended(self):
        skipped = stackweave.trace(self.other(), if_busy="skip")
        with stackweave.trace(self.path):
            skipped.start()
            self.assertEqual(skipped.state, "skipped")
        with skipped.start():
            self.assertEqual(skipped.state, "recording")
            traced_work()
        self.assertIn("traced_work", [row.name for row in skipped.recording.top(all=True)])

    def test_decorated_functions(self):
        second = stackweave.trace(self.other(), if_busy="skip")
        decorated = second(traced_work)
        with stackweave.trace(self.path):
            self.assertEqual(decorated(), 45)
            self.assertEqual(second.state, "skipped")
        self.assertEqual((decorated(), decorated()), (45, 45))
        second.stop()
        self.assertEqual({row.name: row.calls for row in second.recording.top(all=True)}["traced_work"], 2)

    def test_other_values_are_refused(self):
        for kind in KINDS:
            with self.assertRaisesRegex(ValueError, 'if_busy must be "raise" or "skip", but is \'wait\''):
                kind(self.path, if_busy="wait")

    def test_without_it_the_second_one_raises(self):
        with stackweave.trace(self.path):
            second = stackweave.trace(self.other())
            with self.assertRaisesRegex(stackweave.StartError, "one trace at a time"):
                second.start()
            self.assertEqual(second.state, "new")


class Requests(RecordingCase):
    """A server that traces requests, some of them concurrent."""

    def path_of(self, number):
        return os.path.join(self.folder, f"request-{number}.swv")

    def test_of_two_threads_one_is_traced(self):
        together, done = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)
        states, failures = {}, []

        def request(number):
            try:
                with stackweave.trace(self.path_of(number), if_busy="skip") as trace:
                    together.wait()
                    traced_work()
                    states[number] = trace.state
                    done.wait()
            except BaseException as error:
                failures.append(error)
                together.abort()

        threads = [threading.Thread(target=request, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])
        self.assert_one_was_traced(states, 2)

    def test_of_many_threads_at_one_moment_one_is_traced(self):
        count = 8
        together, done = threading.Barrier(count, timeout=60), threading.Barrier(count, timeout=60)
        states, failures = {}, []

        def request(number):
            try:
                trace = stackweave.trace(self.path_of(number), if_busy="skip")
                together.wait()
                with trace:
                    states[number] = trace.state
                    done.wait()
            except BaseException as error:
                failures.append(error)
                done.abort()

        threads = [threading.Thread(target=request, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])
        self.assertEqual(sorted(states.values()), ["recording"] + ["skipped"] * (count - 1))

    def test_of_two_tasks_one_is_traced(self):
        async def main():
            states, worked, both, done = {}, [], asyncio.Event(), asyncio.Event()

            async def request(number):
                with stackweave.trace(self.path_of(number), if_busy="skip") as trace:
                    states[number] = trace.state
                    if len(states) == 2:
                        both.set()
                    await asyncio.wait_for(both.wait(), 60)
                    worked.append(traced_work())
                    if len(worked) == 2:
                        done.set()
                    await asyncio.wait_for(done.wait(), 60)

            await asyncio.gather(request(0), request(1))
            return states

        self.assert_one_was_traced(asyncio.run(main()), 2)

    def assert_one_was_traced(self, states, calls):
        self.assertEqual(sorted(states.values()), ["recording", "skipped"])
        (number,) = [number for number, state in states.items() if state == "recording"]
        self.assertEqual(self.files(), [f"request-{number}.swv"])
        found = {row.name: row.calls for row in stackweave.open(self.path_of(number)).top(all=True)}
        self.assertEqual(found["traced_work"], calls)
