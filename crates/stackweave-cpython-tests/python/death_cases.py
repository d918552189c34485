"""Code objects that die: their names stay, and no other code object gets them."""

import ctypes
import gc
import os
import shutil
import tempfile
import threading
import weakref

import support
from source_cases import PINNING, locate, make, stats, walk


def case_names_survive_their_code():
    before, seen = stats(), []
    for number in range(3000):
        function = make(f"made_{number}", f"<file {number % 7}>", number % 50 + 1)
        seen.append((number, id(function.__code__), function()))
        del function
        if number % 50 == 0:
            gc.collect()
    gc.collect()
    assert len({address for _, address, _ in seen}) < 2500, "hardly any address was reused"
    assert int(stats()["deaths"]) - int(before["deaths"]) >= 2990, (before, stats())
    assert int(stats()["live"]) < int(before["live"]) + 50, (before, stats())
    assert len({frame for _, _, frame in seen}) == 3000
    for number, _, frame in seen:
        name, _, filename, numbers = locate(frame)
        assert (name, filename, numbers[0]) == (f"made_{number}", f"<file {number % 7}>", number % 50 + 1), number


def case_equal_code_keeps_its_id():
    frames = set()
    for _ in range(20):
        keep = [make("equal", line=3) for _ in range(5)]
        frames.update(function() for function in keep)
    assert len(frames) == 1, frames
    assert make("equal", line=4)() not in frames


def case_repeated_walks_do_not_grow_memory():
    def recurse(depth, count):
        return recurse(depth - 1, count) if depth else support.released.differing_repeats(ctypes.c_uint64(count))

    assert [recurse(depth, 10) for depth in range(100)] == [0] * 100
    before, resident = stats(), support.held.resident_bytes()
    for depth in range(100):
        assert recurse(depth, 2000) == 0
    assert stats() == before
    # Less than six bytes a walk.
    assert support.held.resident_bytes() < resident + (1 << 20), (resident, support.held.resident_bytes())


def case_deaths_while_other_threads_walk():
    faults, stop = [], threading.Event()

    def recurse(depth):
        if depth:
            return recurse(depth - 1)
        while not stop.is_set():
            faults.append(support.released.differing_repeats(ctypes.c_uint64(2000)))

    threads = [threading.Thread(target=recurse, args=(depth,)) for depth in (3, 40)]
    for thread in threads:
        thread.start()
    deaths = int(stats()["deaths"])
    for number in range(2000):
        name = f"dying_{number}"
        assert locate(make(name)())[0] == name
        if number % 50 == 0:
            gc.collect()
    gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert faults and not any(faults), faults
    assert int(stats()["deaths"]) > deaths + 1900

IN_SUB_INTERPRETER = """
import ctypes, gc, sys
sys.path.insert(0, {folder!r})
import support
support.load({library!r})
import source_cases
seen = (ctypes.c_uint64 * 100).from_address({address})
for number in range(100):
    seen[number] = source_cases.make(f"sub_{{number}}", line=number + 1)()
"""


def case_code_of_a_sub_interpreter_dies(library):
    seen = (ctypes.c_uint64 * 100)()
    folder = os.path.dirname(__file__)
    source = IN_SUB_INTERPRETER.format(folder=folder, library=library, address=ctypes.addressof(seen))
    before = stats()
    support.in_sub_interpreter(source)
    assert int(stats()["deaths"]) >= int(before["deaths"]) + 100, (before, stats())
    for number in range(100):
        name, _, _, numbers = locate(seen[number])
        assert (name, numbers[0]) == (f"sub_{number}", number + 1)


def case_code_is_pinned_where_deaths_are_not_detected():
    def seen_by(library):
        function = make("pinned")
        function.__globals__["walk"] = lambda: walk(PINNING, library=library)[0][1][0]
        frame, reference = function(), weakref.ref(function.__code__)
        del function
        gc.collect()
        return locate(frame)[0], reference() is not None

    live = int(stats()["live"])
    assert seen_by(support.released) == ("pinned", False)
    assert int(stats()["live"]) <= live + 8
    assert seen_by(support.held) == ("pinned", True)


def case_two_copies_of_the_library(library):
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(library, os.path.join(folder, "copy.so"))
        copy = support.Library(ctypes.PyDLL, path)
        assert copy.install() is None
    for _ in range(2):
        deaths = [int(each.stats().split()[2]) for each in (support.held, copy)]
        function = make("twice")
        function.__globals__["walk"] = lambda: (walk(library=copy), walk()[0][1][0])[1]
        function()
        del function
        gc.collect()
        now = [int(each.stats().split()[2]) for each in (support.held, copy)]
        assert all(after > before for after, before in zip(now, deaths)), (now, deaths)


def case_another_wrapper_of_the_destructor():
    slot = ctypes.c_void_p.in_dll(ctypes.pythonapi, "PyCode_Type")
    slot = ctypes.c_void_p.from_address(ctypes.addressof(slot) + 48)
    destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    before, seen = slot.value, []
    original = destructor(before)

    @destructor
    def wrapper(code):
        seen.append(code)
        original(code)

    slot.value = ctypes.cast(wrapper, ctypes.c_void_p).value
    try:
        deaths = int(stats()["deaths"])
        function = make("wrapped")
        address, _ = id(function.__code__), function()
        del function
        gc.collect()
        assert address in seen and int(stats()["deaths"]) > deaths
    finally:
        slot.value = before


def case_fork():
    frame = make("before_fork")()
    child = os.fork()
    if not child:
        try:
            good = locate(frame)[0] == "before_fork" and locate(make("in_child")())[0] == "in_child"
            os._exit(0 if good and support.held.differing_walks() is None else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
