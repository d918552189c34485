"""`stackweave stacks` shows the stacks that a process captures itself."""

import hashlib
import json
import os
import sys
import unittest

from tests.stacks_support import StacksCase, pid_of

#: Captures inside a call from native code, and then blocks at the same place.
WOVEN = """
import ctypes, functools, json, sys, time, stackweave

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def note():
    frames = stackweave.capture().frames
    keys = ("kind", "name", "qualname", "filename", "module", "inlined", "address")
    with open("captured", "w") as file:
        json.dump([{"line": frame.lineno, **{key: getattr(frame, key) for key in keys}} for frame in frames], file)
    print("there", flush=True)


def compare(_left, _right):
    for action in note, functools.partial(time.sleep, 600):
        action()


class Sorter:
    def sort(self):
        numbers = (ctypes.c_int * 2)(2, 1)
        yield ctypes.CDLL(None).qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), COMPARE(compare))


def inner(_value):
    return list(Sorter().sort())


def outer():
    return sorted([1], key=inner)


outer()
"""

#: Has threads that block in different ways. The main thread writes their locations to a file, and blocks too.
BLOCKED = """
import asyncio, json, queue, sys, threading, time

lock = threading.Lock()
lock.acquire()
places = []


def recurse(depth):
    if depth:
        recurse(depth - 1)
    else:
        lock.acquire()


class Waiting:
    def __init__(self):
        self.event = threading.Event()

    def wait(self):
        self.event.wait()

    @property
    def value(self):
        return (lambda: self.wait())()


def generate():
    yield from (lock.acquire() for _ in range(1))


def loop():
    async def sleep():
        await asyncio.sleep(600)

    asyncio.run(sleep())


targets = [
    lambda: recurse(60),
    lambda: Waiting().value,
    lambda: list(generate()),
    lambda: queue.Queue().get(),
    lambda: exec(compile("x = 1\\nlock.acquire()", "<made up>", "exec"), {"lock": lock}),
    lambda: [time.sleep(600) for _ in range(2)],
    lambda: max([1, 2], key=lambda _: lock.acquire()),
    loop,
]
threads = [threading.Thread(target=target, daemon=True) for target in targets]
for thread in threads:
    thread.start()


def asleep(thread):
    with open(f"/proc/self/task/{thread.native_id}/stat") as file:
        return file.read().rsplit(") ")[-1].startswith("S")


def seen():
    found = {}
    frames = sys._current_frames()
    for thread in threads:
        frame, rows = frames[thread.ident], []
        while frame is not None:
            code = frame.f_code
            rows.append([getattr(code, "co_qualname", None), code.co_name, code.co_filename, frame.f_lineno])
            frame = frame.f_back
        found[thread.native_id] = rows
    return found


before = None
while before is None or before != seen() or not all(map(asleep, threads)):
    before = seen()
    time.sleep(0.2)
with open("seen", "w") as file:
    json.dump(before, file)
print("there", flush=True)
sys.stdin.read(1)
"""

#: Computes in threads with sleeps in between, until its input ends.
BUSY = """
import hashlib, sys, threading, time

done = threading.Event()
sums = [None] * 3


def work(number):
    while not done.is_set():
        digest = hashlib.sha256()
        for count in range(2000):
            digest.update(b"%d" % count)
            digest.update(sorted(b"stackweave", key=lambda byte: -byte)[number].to_bytes(1, "big"))
        sums[number] = digest.hexdigest()
        time.sleep(0.001)


threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
print("there", flush=True)
sys.stdin.read(1)
done.set()
for thread in threads:
    thread.join()
print(*sums)
sys.exit(7)
"""


def is_python(frame, name):
    return frame["kind"] == "python" and frame["name"] == name


def place_of(frames, name):
    return next(place for place, frame in enumerate(frames) if is_python(frame, name))


class StacksTest(StacksCase):
    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return json.load(file)

    def test_the_weave_is_that_of_a_capture_at_the_same_place(self):
        child = self.start(WOVEN)
        captured = self.read("captured")
        frames = self.stacks(pid_of(child))["threads"][0]["frames"]
        kept = ("kind", "name", "filename", "line", "module", "inlined")
        if os.path.basename(os.readlink(f"/proc/{pid_of(child)}/exe")).startswith("ld-"):
            # The loader was started with the program as its argument. The executable is the loader, so names from
            # the file of the program are missing.
            captured = [frame for frame in captured if not frame["inlined"]]
            frames = [frame for frame in frames if not frame["inlined"]]
            kept = ("kind", "line")

        def whole(frames):
            frames = frames[place_of(frames, "sort") :]
            addresses = [frame.get("address") for frame in frames]
            numbers = [int(address, 16) if isinstance(address, str) else address for address in addresses]
            return [[frame.get(key) or None for key in kept] for frame in frames], numbers

        def between(frames):
            part = frames[place_of(frames, "compare") : place_of(frames, "sort")]
            return [[frame.get(key) or None for key in kept[:2]] for frame in part if not frame["inlined"]]

        self.assertEqual(whole(frames), whole(captured))
        self.assertEqual(between(frames), between(captured))
        self.assertTrue(any("sort" in frame["name"] for frame in frames if frame["kind"] == "native"), frames)

    def test_python_frames_are_those_that_the_process_knows(self):
        child = self.start(BLOCKED)
        seen = self.read("seen")
        stacks = self.stacks(pid_of(child))
        threads = {str(thread["tid"]): thread for thread in stacks["threads"]}
        self.assertLessEqual(set(seen), set(threads))
        for task, rows in seen.items():
            thread = threads[task]
            frames = [frame for frame in thread["frames"] if frame["kind"] == "python"]
            qualified = sys.version_info >= (3, 11)
            found = [
                [frame.get("qualname") if qualified else None, frame["name"], frame["filename"], frame["line"]]
                for frame in frames
            ]
            self.assertEqual(found, rows)
            self.assertIsNone(thread["problem"])
            self.assertEqual((thread["state"], thread["has_gil"]), ("S", False))
            # Each Python frame is inside the native frame that runs it, so the outermost frame is native.
            self.assertEqual(thread["frames"][-1]["kind"], "native")
        self.assertEqual(stacks["python"].split(".")[:2], [str(number) for number in sys.version_info[:2]])
        self.assertEqual(stacks["remarks"], [])
        self.assertGreater(stacks["stopped_ns"], 0)

    def test_a_program_that_is_looked_at_comes_to_the_same_end(self):
        child = self.start(BUSY)
        process = pid_of(child)
        for _ in range(15):
            stacks = self.stacks(process)
            self.assertGreaterEqual(len(stacks["threads"]), 4)
            self.assertEqual([thread["problem"] for thread in stacks["threads"]], [None] * len(stacks["threads"]))
        output, _ = child.communicate("x", timeout=60)
        expected = []
        for number in range(3):
            digest = hashlib.sha256()
            for count in range(2000):
                digest.update(b"%d" % count)
                digest.update(sorted(b"stackweave", reverse=True)[number].to_bytes(1, "big"))
            expected.append(digest.hexdigest())
        self.assertEqual(output.split(), expected)
        self.assertEqual(child.returncode, 7)


if __name__ == "__main__":
    unittest.main()
