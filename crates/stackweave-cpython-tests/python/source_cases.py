"""Frames with the ids of their code, and the names of these."""

import ctypes
import json
import signal
import sys
import threading
import time

import support

REPLAYING, PLAIN, INTERRUPTED, PINNING, PUBLIC = range(5)


def walk(kind=REPLAYING, capacity=64, library=None):
    """Returns the words of each frame, without those of this module's own functions."""
    frames, stop = (library or support.held).frames("source_walk", capacity, ctypes.c_uint32(kind))
    return [tuple(frame.words) for frame in frames[2:]], stop


def locate(frame):
    name, qualname, filename, numbers = support.held.locate(ctypes.c_uint64(frame)).decode().split("\n")
    return name, qualname, filename, json.loads(numbers)


def stats():
    names = "codes live deaths bytes minor decoded watch reader"
    return dict(zip(names.split(), support.held.stats().decode().split()))


def make(name, filename="<made>", line=1, body="return walk()"):
    made = {"walk": lambda: walk()[0][1][0]}
    code = compile("\n" * (line - 1) + f"def {name}(): {body}", filename, "exec")
    exec(code, made)
    return made[name]


def case_source_is_direct_and_watching():
    assert stats()["reader"] == "direct" and stats()["watch"] == "watching", stats()
    assert int(stats()["minor"]) == sys.version_info[1]


def case_code_has_the_id_of_its_frames():
    function = make("identified")
    expected = support.held.code_id(ctypes.c_uint64(id(function.__code__)))
    assert expected and function() >> 29 & 0xFFFFFFFF == expected
    assert support.held.code_id(ctypes.c_uint64(id(make("other").__code__))) != expected
    assert support.held.code_id(ctypes.c_uint64(id([]))) == 0


def case_names_in_every_alphabet():
    wide = "\u0441\u0442\u0435\u043a", "\U0001f600\U00010400"
    surrogates = "bad\udc80\udcffname", "\ud83d\ude00"
    for name in "plain", "", "caf\u00e9", *wide, *surrogates:
        function = make("renamed")
        changes = {"co_name": name, "co_filename": f"/{name}.py"}
        if sys.version_info >= (3, 11):
            changes["co_qualname"] = f"Outer.{name}"
        function.__code__ = function.__code__.replace(**changes)
        for kind in REPLAYING, PUBLIC:
            function.__globals__["walk"] = lambda: walk(kind)[0][1][0]
            shown = "".join("\ufffd" if "\ud800" <= character < "\ue000" else character for character in name)
            qualname = f"Outer.{shown}" if sys.version_info >= (3, 11) else "-"
            assert locate(function())[:3] == (shown, qualname, f"/{shown}.py"), (name, kind)


def case_positions_equal_those_of_python():
    def here():
        frames, _ = walk(PLAIN)
        return frames, sys._getframe()

    frames, frame = here()
    for word, _ in frames[1:]:
        frame = frame.f_back
        name, _, filename, numbers = locate(word)
        assert (name, filename) == (frame.f_code.co_name, frame.f_code.co_filename)
        if frame.f_code is not case_positions_equal_those_of_python.__code__:
            assert numbers[0] == frame.f_lineno
            if sys.version_info >= (3, 11):
                line, end_line, column, end_column = list(frame.f_code.co_positions())[frame.f_lasti // 2]
                assert numbers == [line, end_line, column, end_column], (numbers, name)


def case_a_cut_stack_has_activations():
    def recurse(depth):
        if depth:
            return recurse(depth - 1)
        whole, _ = support.held.frames("source_walk", 100, ctypes.c_uint32(PLAIN))
        for kind in PLAIN, REPLAYING, REPLAYING, INTERRUPTED:
            for capacity in 1, 10, 40:
                cut, stop = support.held.frames("source_walk", capacity, ctypes.c_uint32(kind))
                assert stop == "depth limit reached"
                activations = ([frame.words[1] for frame in frames[:capacity]] for frames in (cut, whole))
                assert len(set(map(tuple, activations))) == 1, (kind, capacity)
                # The innermost two frames have run further between the walks.
                words = ([frame.words[0] for frame in frames[2:capacity]] for frames in (cut, whole))
                assert len(set(map(tuple, words))) == 1, (kind, capacity)

    recurse(60)


def case_other_threads():
    ready, done = threading.Barrier(4), threading.Event()

    def wait(depth):
        if depth:
            return wait(depth - 1)
        ready.wait()
        done.wait()

    threads = [threading.Thread(target=wait, args=(depth,)) for depth in (0, 5, 30)]
    for thread in threads:
        thread.start()
    ready.wait()
    time.sleep(0.05)
    assert support.held.thread_count() >= 4 and support.released.thread_count() == 0
    for thread, depth in zip(threads, (0, 5, 30)):
        frames, stop = support.held.frames("source_walk_thread", 64, ctypes.c_uint64(thread.ident))
        names = [locate(frame.words[0])[0] for frame in frames]
        expected = [name for _, _, _, name in support.truth(sys._current_frames()[thread.ident])]
        assert (names, stop) == (expected, "end of stack")
        assert names.count("wait") >= depth + 1
    done.set()
    for thread in threads:
        thread.join()
    assert support.held.frames("source_walk_thread", 64, ctypes.c_uint64(1))[0] == []


def case_public_api_as_a_source():
    frames, stop = walk(PUBLIC)
    assert stop == "end of stack"
    expected = [name for _, _, _, name in support.truth(sys._getframe())]
    assert [locate(frame)[0] for frame, _ in frames] == expected
    assert not any(activation for _, activation in frames)
    assert walk(PUBLIC, library=support.released) == ([], "the GIL is not held")
    assert walk(PUBLIC, capacity=3)[1] == "depth limit reached"


def case_public_api_while_an_exception_is_set():
    function = make("never_seen")
    function.__globals__["walk"] = support.held.public_walk_with_exception
    try:
        function()
    except KeyError as kept:
        assert kept.args == ("kept",)
    else:
        raise AssertionError("the exception was lost")


def case_the_first_walk_of_a_code_object_allocates_nothing():
    for _ in range(3):
        made = {"allocations": support.held.allocations}
        exec(compile("def new(): return allocations()", f"<new {time.monotonic_ns()}>", "exec"), made)
        assert made["new"]() == 0


def case_the_first_walk_of_a_code_object_is_in_a_signal_handler():
    assert support.held.handle_with_source(signal.SIGUSR2) == 0
    for number in range(50):
        function = make(f"signalled_{number}", body="return walk()")
        function.__globals__["walk"] = lambda: signal.raise_signal(signal.SIGUSR2)
        function()
        del function
        pairs = (support.SourceFrame * 4096)()
        frames = pairs[: support.held.source_seen(pairs)]
        names = [locate(frame.words[0])[0] for frame in frames]
        assert names[:2] == ["<lambda>", f"signalled_{number}"], names


def case_walks_that_are_interrupted_by_walks():
    assert support.held.handle_with_source(signal.SIGUSR2) == 0
    before = support.held.complete_samples()
    support.held.interrupt(signal.SIGUSR2, ctypes.c_uint64(20))
    while support.held.complete_samples() < before + 1000:
        assert support.held.differing_repeats(ctypes.c_uint64(200)) == 0
        make("interrupted")()
    support.held.stop_interrupting()
