"""A Traceback and a Frame have documented properties."""

import copy
import gc
import json
import pickle
import sys
import threading
import traceback
import unittest

import stackweave
from stackweave._traceback import shorten
from tests.support import python_frames, run_python, twice

DUMP = """
import pickle, stackweave, sys
def f():
    return stackweave.capture(native=False)
captured = [f() for _ in range(2)] + [stackweave.capture()]
sys.stdout.write(pickle.dumps([*captured, captured[0]]).hex())
"""


def here(**request):
    return stackweave.capture(**request)


class Identity(unittest.TestCase):
    def test_equal_stacks_are_equal(self):
        first, second = twice(here)
        other = here()
        self.assertEqual(first, second)
        self.assertEqual(first.stack_id, second.stack_id)
        self.assertEqual(hash(first), hash(second))
        self.assertNotEqual(first, other)
        self.assertNotEqual(first, first.stack_id)
        self.assertEqual(len({first, second, other}), 2)
        with self.assertRaises(TypeError):
            first < second

    def test_equal_stacks_are_equal_across_threads(self):
        def work():
            ids.append(stackweave.current_stack_id())

        ids = []
        for _ in range(100):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(ids[-1], ids[-2])

    def test_a_stack_id_leads_to_its_traceback(self):
        def both():
            return stackweave.capture(), stackweave.current_stack_id()

        captured, stack_id = both()
        self.assertIsInstance(stack_id, int)
        again = stackweave.traceback_of(captured.stack_id)
        self.assertEqual(again, captured)
        self.assertEqual(again.frames, captured.frames)
        self.assertEqual(python_frames(stackweave.traceback_of(stack_id))[0][2], "both")

    def test_a_traceback_is_small_and_unknown_to_the_collector(self):
        captured = here()
        self.assertLessEqual(sys.getsizeof(captured), 64)
        self.assertFalse(gc.is_tracked(captured))

    def test_a_traceback_can_be_neither_made_nor_changed(self):
        for change in (
            lambda: stackweave.Traceback(),
            lambda: type("Sub", (stackweave.Traceback,), {}),
            lambda: stackweave.Frame(),
        ):
            with self.assertRaises(TypeError):
                change()
        for target, name in ((here(), "frames"), (here(), "new"), (here().frames[0], "name")):
            with self.assertRaises(AttributeError):
                setattr(target, name, 1)

    def test_truth_needs_no_names(self):
        looked_up = stackweave.stats()["symbolizer"]["addresses"]
        self.assertTrue(here())
        self.assertFalse(here(limit=0))
        self.assertTrue(repr(here()))
        self.assertEqual(stackweave.stats()["symbolizer"]["addresses"], looked_up)


class Frames(unittest.TestCase):
    def test_frames_are_resolved_once(self):
        captured = here()
        self.assertIs(captured.frames, captured.frames)
        self.assertEqual(len(captured), len(captured.frames))

    def test_equal_frames_are_one_object(self):
        first, second = twice(here)
        other = here()
        self.assertIs(first.frames[0], second.frames[0])
        self.assertIs(first.frames[-1], other.frames[-1])
        self.assertEqual(first.frames[0], second.frames[0])
        self.assertNotEqual(first.frames[0], first.frames[1])
        self.assertEqual(len({*first.frames, *second.frames}), len(set(first.frames)))

    def test_a_python_frame_says_where_it_is(self):
        class Place:
            def method(self):
                return stackweave.capture()

        line = Place.method.__code__.co_firstlineno + 1
        frame = Place().method().frames[0]
        self.assertEqual((frame.name, frame.filename, frame.lineno, frame.kind), ("method", __file__, line, "python"))
        self.assertEqual((frame.module, frame.inlined, frame.address), (None, False, None))
        if sys.version_info >= (3, 11):
            self.assertEqual(frame.qualname, Place.method.__qualname__)
            self.assertEqual((frame.end_lineno, frame.end_colno - frame.colno), (line, len("stackweave.capture()")))
        else:
            self.assertIsNone(frame.colno)
        self.assertIn("method", repr(frame))
        self.assertIn(f"{__file__}:{line}", repr(frame))

    def test_a_native_frame_says_where_it_is(self):
        frames = [frame for frame in here().frames if frame.kind == "native"]
        for frame in frames:
            self.assertGreater(frame.address, 0)
            self.assertTrue(frame.name)
            self.assertIsNone(frame.qualname)
        self.assertTrue([frame for frame in frames if frame.module and "libc" in frame.module])


class Pickles(unittest.TestCase):
    def test_copies_are_the_traceback_itself(self):
        captured = here()
        self.assertIs(copy.copy(captured), captured)
        self.assertIs(copy.deepcopy([captured])[0], captured)
        self.assertIs(copy.deepcopy(captured.frames[0]), captured.frames[0])

    def test_a_pickle_comes_back_equal(self):
        captured = here()
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(captured, protocol))
            self.assertEqual(again, captured)
            self.assertEqual(hash(again), hash(captured))
            self.assertEqual(again.frames, captured.frames)
            self.assertEqual(again.stop_reason, captured.stop_reason)
            frame = pickle.loads(pickle.dumps(captured.frames[0], protocol))
            self.assertEqual(
                (frame, hash(frame), repr(frame)), (captured.frames[0], hash(captured.frames[0]), repr(frame))
            )

    def test_a_cut_stack_stays_cut(self):
        captured = here(limit=1)
        self.assertEqual(pickle.loads(pickle.dumps(captured)).stop_reason, captured.stop_reason)

    def test_a_pickle_of_another_process_keeps_its_frames(self):
        data = bytes.fromhex(run_python(DUMP))
        first, second, woven, same = pickle.loads(data)
        self.assertIs(first, same)
        self.assertEqual(first, second)
        self.assertEqual(hash(first), hash(second))
        self.assertNotEqual(first, woven)
        self.assertIsNone(first.stack_id)
        self.assertEqual(first.frames[0].name, "f")
        self.assertIs(first.frames[-1], second.frames[-1])
        self.assertIn("in f", str(first))
        self.assertEqual(json.loads(first.to_json())[0]["name"], "f")
        self.assertEqual(stackweave.symbolize([first, first])[0][0]["name"], "f")
        again = pickle.loads(pickle.dumps(first))
        self.assertEqual((again, hash(again), len(again)), (first, hash(first), len(first.frames)))
        self.assertIn(f"{len(first)} frames", repr(first))

    def test_a_bad_pickle_is_refused(self):
        rebuild, (frames, reason, stack, process) = here().__reduce__()
        for arguments in (
            ((1,), reason, stack, process),
            (frames, "no reason", stack, process),
            ("frames", reason, stack, process),
            (frames, reason, "1", process),
            (frames, reason, -1, process),
        ):
            with self.assertRaises((TypeError, ValueError, OverflowError)):
                rebuild(*arguments)
        rebuild, (names, numbers) = here().frames[0].__reduce__()
        with self.assertRaises(ValueError):
            rebuild(("odd", *names[1:]), numbers)


class Shown(unittest.TestCase):
    def test_a_summary_is_what_the_standard_library_makes(self):
        captured, extracted = here(native=False), traceback.extract_stack()
        summary = captured.summary()
        self.assertIsInstance(summary, traceback.StackSummary)
        self.assertEqual([frame.name for frame in summary], [frame.name for frame in extracted] + ["here"])
        self.assertEqual(list(summary[:-2]), list(extracted[:-1]))
        self.assertEqual([frame.lineno for frame in summary[:-2]], [frame.lineno for frame in extracted[:-1]])
        self.assertEqual(captured.format(), traceback.format_list(summary))

    def test_a_summary_has_native_frames_too(self):
        captured = here()
        summary = captured.summary()
        self.assertEqual(len(summary), len(captured))
        for frame, shown in zip(reversed(captured.frames), summary):
            self.assertEqual(shown.name, frame.name)
            self.assertEqual(shown.lineno, frame.lineno)
            self.assertTrue(shown.filename)
        self.assertEqual(len(captured.format()), len(summary.format()))

    def test_text_reads_like_a_traceback(self):
        def shown():
            return sorted([0], key=lambda _: texts.append(str(stackweave.capture())))

        texts = []
        shown()
        lines = texts[0].splitlines()
        self.assertEqual(lines[0], "Traceback (most recent call last):")
        places = [line for line in lines if line.startswith('  File "')]
        self.assertRegex(places[-1], r'^  File ".*test_traceback.py", line \d+, in <lambda>$')
        self.assertRegex(places[-2], r'^  File ".*test_traceback.py", line \d+, in shown$')
        inner, outer = lines.index(places[-1]), lines.index(places[-2])
        rows = [line for line in lines[outer + 2 : inner] if line.startswith("      | ")]
        self.assertTrue(rows, "the sort is between them")
        self.assertIn("texts.append(str(stackweave.capture()))", lines[inner + 1])
        modules = {line.rindex("  [") for line in lines if line.startswith("      | ") and line.endswith("]")}
        self.assertEqual(len(modules), 1, "modules are aligned")
        self.assertTrue(texts[0].isascii())

    def test_a_cut_stack_says_so_where_it_is_cut(self):
        lines = str(here(limit=1)).splitlines()
        self.assertEqual(lines[1], "  (cut here: limit reached)")

    def test_repeated_frames_are_folded(self):
        def recurse(depth):
            return stackweave.capture(native=False) if depth == 0 else recurse(depth - 1)

        captured = recurse(100)
        self.assertGreater(len(captured), 100)
        self.assertIn("[Previous line repeated", str(captured))

    def test_long_names_keep_what_matters(self):
        long = "std::vector<std::pair<int, std::function<void (int)>>>::emplace_back<int&, Callback>(int&, Callback&&)"
        self.assertEqual(shorten(long), "std::vector<...>::emplace_back<...>(...)")
        self.assertEqual(shorten("short<int>()"), "short<int>()")
        stream = "std::ostream& ns::operator<< <char, std::char_traits<char>>(std::ostream&, ns::Long<char> const&)"
        self.assertEqual(shorten(stream), "std::ostream& ns::operator<< <...>(...)")
        arrow = "std::unique_ptr<Something, std::default_delete<Something>>::operator->() const [clone .cold.1234]"
        self.assertEqual(shorten(arrow), "...unique_ptr<...>::operator->(...) const [clone .cold.1234]")
        rust = "<alloc::boxed::Box<dyn core::ops::function::Fn()> as core::ops::function::Fn<()>>::call::{{closure}}"
        self.assertIn("{{closure}}", shorten(rust))
        deep = "::".join(f"namespace{number}" for number in range(20))
        self.assertEqual(len(shorten(deep)), 60)
        self.assertTrue(shorten(deep).endswith("::namespace19"))

    def test_json_is_what_symbolize_gives(self):
        captured = here()
        frames = json.loads(captured.to_json())
        self.assertEqual(json.loads(stackweave.to_json([captured, captured])), [frames, frames])
        dicts = stackweave.symbolize([captured])[0]
        for frame in frames:
            if "address" in frame:
                frame["address"] = int(frame["address"], 16)
        self.assertEqual(frames, dicts)
        self.assertEqual([list(frame)[:3] for frame in frames], [["name", "filename", "line"]] * len(frames))
        self.assertEqual([frame["name"] for frame in frames], [frame.name for frame in captured.frames])
