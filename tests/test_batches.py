"""Many tracebacks, or addresses, at once."""

import json
import sys
import threading
import unittest

import stackweave
from tests.support import run_python, twice


def here(**request):
    return stackweave.capture(**request)


class Symbolize(unittest.TestCase):
    def test_equal_frames_and_tracebacks_share_their_objects(self):
        first, second = twice(here)
        other = here()
        lists = stackweave.symbolize([first, other, second])
        self.assertIs(lists[0], lists[2])
        self.assertIsNot(lists[0], lists[1])
        self.assertIs(lists[0][-1], lists[1][-1])
        self.assertEqual([len(frames) for frames in lists], [len(first), len(other), len(second)])

    def test_every_frame_has_name_filename_and_line_first(self):
        for frame in stackweave.symbolize([here()])[0]:
            self.assertEqual(list(frame)[:3], ["name", "filename", "line"])
            self.assertIsInstance(frame["filename"], str)
            self.assertIsInstance(frame["line"], int)
            self.assertNotIn(None, frame.values())

    def test_any_iterable_will_do(self):
        captured = here()
        self.assertEqual(stackweave.symbolize(iter((captured,))), stackweave.symbolize([captured]))
        self.assertEqual(stackweave.symbolize([]), [])
        self.assertEqual(json.loads(stackweave.to_json(())), [])

    def test_wrong_items_are_named(self):
        captured = here()
        for function in (stackweave.symbolize, stackweave.to_json):
            with self.assertRaisesRegex(TypeError, r"item 1 must be a Traceback, not str"):
                function([captured, "x"])
            with self.assertRaisesRegex(TypeError, r"takes a list of Traceback, not Traceback"):
                function(captured)
            with self.assertRaises(ZeroDivisionError):
                function(1 // 0 for _ in range(2))


class Addresses(unittest.TestCase):
    def test_return_addresses_become_their_frames(self):
        native = [frame for frame in here().frames if frame.kind == "native"]
        chains = {}
        for frame in native:
            chains.setdefault(frame.address, []).append(frame)
        resolved = stackweave.resolve_addresses(list(chains))
        for expected, frames in zip(chains.values(), resolved):
            self.assertEqual(frames[-len(expected) :], expected[-len(frames) :])
            self.assertEqual([frame.inlined for frame in frames], [True] * (len(frames) - 1) + [False])

    def test_an_address_in_no_module_is_its_own_name(self):
        self.assertEqual([frame.name for frame in stackweave.resolve_addresses([4])[0]], ["0x4"])
        self.assertEqual(stackweave.resolve_addresses([]), [])

    def test_objects_that_are_not_addresses_are_refused(self):
        for address, error in (
            (-1, ValueError),
            (2**57, ValueError),
            (2**64, ValueError),
            ("1", TypeError),
            (True, TypeError),
            (1.0, TypeError),
        ):
            with self.assertRaisesRegex(error, "item 1"):
                stackweave.resolve_addresses([1, address])
        with self.assertRaisesRegex(TypeError, "takes a list of int, not int"):
            stackweave.resolve_addresses(1)


class Threads(unittest.TestCase):
    def test_all_threads_are_there(self):
        def wait():
            started.release()
            finish.acquire()

        started, finish = threading.Semaphore(0), threading.Semaphore(0)
        threads = [threading.Thread(target=wait) for _ in range(3)]
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                started.acquire()
            stacks = stackweave.thread_stacks()
        finally:
            finish.release(len(threads))
            for thread in threads:
                thread.join()
        for thread in threads:
            frames = stacks[thread.ident].frames
            self.assertIn("wait", [frame.name for frame in frames])
            self.assertEqual({frame.kind for frame in frames}, {"python"})
        own = stacks[threading.get_ident()]
        self.assertEqual(own.frames[0].name, "test_all_threads_are_there")
        self.assertEqual(own.frames[-1].kind, "native")

    def test_threads_agree_with_the_standard_library(self):
        def wait(depth):
            if depth:
                return wait(depth - 1)
            started.set()
            return finish.wait()

        started, finish = threading.Event(), threading.Event()
        thread = threading.Thread(target=wait, args=(200,))
        thread.start()
        started.wait()
        frame, expected = sys._current_frames()[thread.ident], []
        captured = stackweave.thread_stacks()[thread.ident]
        while frame is not None:
            expected.append((frame.f_code.co_filename, frame.f_code.co_name))
            frame = frame.f_back
        del frame
        finish.set()
        thread.join()
        ours = [(frame.filename, frame.name) for frame in captured.frames]
        self.assertEqual(ours[-200:], expected[-200:])
        self.assertEqual(captured.stop_reason, "end of stack")


GIL_RELEASED = """
import _thread, stackweave, sys, time
def work(gate, ran, done):
    started.append(1)
    with gate:
        ran.append(1)
    done.release()
while True:
    sys.setswitchinterval(0.005)
    started, ran, gate, done = [], [], _thread.allocate_lock(), _thread.allocate_lock()
    gate.acquire(), done.acquire()
    _thread.start_new_thread(work, (gate, ran, done))
    while not started:
        time.sleep(0.001)
    time.sleep(0.05)             # until it waits at the gate
    sys.setswitchinterval(1000)  # from now on a thread runs only if another gives the GIL away
    gate.release()
    if not ran:
        break                    # else it came to the gate too late
end = time.monotonic() + 60
while not ran:
    turn = stackweave.capture()
    {resolve}
    assert time.monotonic() < end, "no other thread ran while names were looked up"
done.acquire()
"""


class TheGil(unittest.TestCase):
    def test_looking_names_up_lets_other_threads_run(self):
        for resolve in (
            "turn.frames",
            "stackweave.symbolize([turn])",
            "stackweave.resolve_addresses([1 << 40] * 100000)",
        ):
            with self.subTest(resolve):
                run_python(GIL_RELEASED.replace("{resolve}", resolve))
