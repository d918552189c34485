"""Loads the library under test, and compares it with what Python itself reports about the same stack."""

import ctypes
import sys


class Record(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint64),
        ("activation", ctypes.c_uint64),
        ("instruction", ctypes.c_uint32),
        ("is_entry", ctypes.c_uint32),
    ]


class SourceFrame(ctypes.Structure):
    """A frame with the id of its code, and its activation."""

    _fields_ = [("words", ctypes.c_uint64 * 2)]


class Outcome(ctypes.Structure):
    _fields_ = [("len", ctypes.c_size_t), ("stop", ctypes.c_char_p)]


TEXTS = """
    fallback_reason unavailable foreign_thread misplaced_activations describe self_test_with_table_of install locate
    stats differing_walks calls_start calls_mechanism calls_take calls_frames stamps_start
    allocators_start allocators_block
"""
NUMBERS = """
    allocations walk_while_held seen samples cut_samples torn_samples ticks line replayed thread_count source_seen
    complete_samples differing_repeats resident_bytes code_id calls_stop stamps other_frames
    memory_requests allocators_stop allocators_count other_calls
"""
WALKS = "walk walk_interrupted walk_public walk_thread walk_reader source_walk source_walk_thread"
EACH_FRAME_IS_ENTERED = sys.version_info < (3, 11)


class Library:
    """The library, through a loader that keeps the GIL during a call (PyDLL) or releases it (CDLL)."""

    def __init__(self, loader, path):
        self._library = loader(path)
        for names, result in (TEXTS, ctypes.c_char_p), (NUMBERS, ctypes.c_uint64), (WALKS, Outcome):
            for name in names.split():
                getattr(self, name).restype = result
        for name in "ticks_per_nanosecond repeated_walk repeated_replay timed_locate".split():
            getattr(self, name).restype = ctypes.c_double
        self.hold_gil.restype = self.state_is_read_directly.restype = ctypes.c_bool
        self.report_at_exit.restype = None

    def __getattr__(self, name):
        function = self._library["cpython_tests_" + name]
        setattr(self, name, function)
        return function

    def frames(self, walk, capacity, *arguments):
        records = ((SourceFrame if walk.startswith("source_") else Record) * capacity)()
        outcome = getattr(self, walk)(*arguments, records, ctypes.c_size_t(capacity))
        return records[: outcome.len], outcome.stop.decode()


held = released = None


def load(path):
    global held, released
    held, released = Library(ctypes.PyDLL, path), Library(ctypes.CDLL, path)
    fault = held.install()
    assert fault is None, fault


def truth(frame):
    frames = []
    while frame is not None:
        frames.append((id(frame.f_code), frame.f_lasti & 0xFFFFFFFF, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames


def compare(frames, expected, what, exact=1):
    """Compares frames. The first `exact` frames have run further since the walk: only their code is compared."""
    found = [(frame.code, frame.instruction) for frame in frames]
    wanted = [(code, lasti) for code, lasti, _, _ in expected]
    assert [code for code, _ in found] == [code for code, _ in wanted], (what, named(frames, expected))
    assert found[exact:] == wanted[exact:], (what, found, wanted)
    for frame, (_, _, line, name) in list(zip(frames, expected))[exact:]:
        assert held.line(ctypes.c_uint64(frame.code), frame.instruction) == line, (what, name, line)


def named(frames, expected):
    """Returns both stacks by name; a code object that Python does not show keeps its number."""
    names = {code: name for code, _, _, name in expected}
    return [names.get(frame.code, frame.code) for frame in frames], [name for _, _, _, name in expected]


def entries(frames, expected):
    return [name for frame, (_, _, _, name) in zip(frames, expected) if frame.is_entry]


def check_activations(frames, what):
    outermost = 0
    for frame in frames:
        assert frame.activation > outermost or frame.activation == outermost and not EACH_FRAME_IS_ENTERED, what
        outermost = frame.activation
    entered = [frame.activation for frame in frames if frame.is_entry]
    assert entered == sorted(set(entered)), (what, "an activation has one entry", entered)
    assert {frame.activation for frame in frames} == set(entered), (what, "each activation has an entry")
    assert not frames or frames[-1].is_entry, (what, "the outermost frame is entered by native code")


checks = 0


def check(what="", *_, native=True, without_gil=True):
    """Walks here in every way and compares with what Python reports. Returns the frames and Python's report."""
    global checks
    checks += 1
    walks = [(held, "walk"), (held, "walk_interrupted"), (held, "walk_public")]
    if without_gil:
        walks += [(released, "walk"), (released, "walk_interrupted")]
    for library, walk in walks:
        expected = truth(sys._getframe())
        frames, stop = library.frames(walk, len(expected) + 8)
        frames = frames[1:]  # without Library.frames
        assert stop == "end of stack", (what, walk, stop)
        compare(frames, expected, (what, walk))
        if walk != "walk_public":
            check_activations(frames, (what, walk))
    for library in (held, released) if without_gil else (held,):
        differing = library.differing_walks()
        assert not differing, (what, differing.decode())
    if native:
        misplaced = held.misplaced_activations()
        assert not misplaced, (what, misplaced.decode(), named(frames, expected))
    return held.frames("walk", len(expected) + 8)[0][1:], expected


def in_sub_interpreter(source, before_it_ends=lambda: None):
    """Runs a script in another interpreter, which shares the GIL, and is then destroyed."""
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters

        interpreter = interpreters.create("legacy")
    else:
        import _xxsubinterpreters as interpreters

        interpreter = interpreters.create(isolated=False)
    fault = interpreters.run_string(interpreter, source)
    assert fault is None, fault
    before_it_ends()
    interpreters.destroy(interpreter)
