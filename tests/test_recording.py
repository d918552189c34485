"""The events that a program records are in the file of the recording."""

import enum
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

import stackweave
from tests.recordings import RecordingCase, event_tuples, python_names
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest


class Unprintable:
    def __str__(self):
        raise ValueError("no")


class Feeding(RecordingCase):
    def test_each_call_is_an_event(self):
        with self.recording() as recorder:
            recorder.begin("outer")
            recorder.counter("queue", 3)
            recorder.counter("queue", 2.5)
            with recorder.span("inner") as span:
                self.assertIsInstance(span, stackweave.Span)
                recorder.instant("tick", stack=False)
            recorder.end()
            recorder.allocation(0x7F0000001000, 4096, stack=False)
            recorder.free(0x7F0000001000)
            recorder.traceback(weight=-3)
            recorder.free(2**64 - 1)
        self.assertEqual(
            event_tuples(recorder.recording.events()),
            [
                ("begin", "outer"),
                ("counter", "queue", 3.0),
                ("counter", "queue", 2.5),
                ("begin", "inner"),
                ("instant", "tick"),
                ("end",),
                ("end",),
                ("allocate", 0x7F0000001000, 4096),
                ("free", 0x7F0000001000),
                ("sample", -3),
                ("free", 2**64 - 1),
            ],
        )

    def test_the_summary_says_what_was_written(self):
        with self.recording() as recording:
            recording.begin("x")
            recording.end()
        summary = recording.stop()
        self.assertEqual(summary, (self.path, 2, os.path.getsize(self.path), {}, None))
        self.assertEqual(summary.events, 2)
        self.assertEqual(stackweave.open(self.path).info()["events"], 2)

    def test_stacks_are_those_of_the_caller(self):
        def leaf(recorder):
            recorder.instant("here")
            with recorder.span("in", stack=True):
                recorder.allocation(16, 8)
                recorder.traceback()

        with self.recording() as recorder:
            leaf(recorder)
            recorder.traceback(stackweave.capture(native=False), weight=2)
        name = self._testMethodName
        for event in list(recorder.recording.events()):
            if event.role == "end":
                self.assertEqual(event.stack, ())
            elif event.values.get("weight") == 2:
                self.assertEqual(python_names(event)[0], name)
                self.assertNotIn("native", [frame.kind for frame in event.stack])
            else:
                self.assertEqual(python_names(event)[:2], ["leaf", name])
                self.assertEqual(event.stack[-1].kind, "native")

    def test_lines_and_files_are_recorded(self):
        with self.recording() as recorder:
            recorder.instant("here")
            line = sys._getframe().f_lineno - 1
        frame = next(recorder.recording.events()).stack[0]
        self.assertEqual((frame.filename, frame.lineno, frame.kind), (__file__, line, "python"))
        if sys.version_info >= (3, 11):
            self.assertTrue(frame.qualname.endswith(self._testMethodName))

    def test_a_stack_of_another_process_is_recorded_by_its_names(self):
        captured = pickle.loads(pickle.dumps(stackweave.capture(native=False)))
        elsewhere = stackweave._native._rebuild_traceback(captured.frames, "end of stack", None, None)
        self.assertIsNone(elsewhere.stack_id)
        with self.recording() as recorder:
            recorder.traceback(elsewhere)
        event = next(recorder.recording.events())
        self.assertEqual([frame.name for frame in event.stack], [frame.name for frame in captured.frames])
        self.assertEqual([frame.lineno for frame in event.stack], [frame.lineno for frame in captured.frames])

    def test_names_may_be_anything_that_is_text(self):
        names = ["", "a" * 5000, "täglich \N{SNOWMAN}", "nul\0inside", "lone \ud800", "x" * 1025]
        with self.recording() as recorder:
            for name in names:
                recorder.instant(name, stack=False)
                recorder.instant("".join(list(name)), stack=False)
        expected = [name.replace("\ud800", "\N{REPLACEMENT CHARACTER}") for name in names for _ in range(2)]
        # A lone surrogate is not in UTF-8, and is replaced by one character or by three.
        found = [
            event.name.replace("\N{REPLACEMENT CHARACTER}" * 3, "\N{REPLACEMENT CHARACTER}")
            for event in recorder.recording.events()
        ]
        self.assertEqual(found, expected)

    def test_many_names_keep_their_meaning(self):
        names = [f"name {number}" for number in range(2000)]
        with self.recording() as recorder:
            for name in names + names:
                recorder.begin(name)
                recorder.end()
        self.assertEqual([event.name for event in recorder.recording.events() if event.name], names + names)


class Details(RecordingCase):
    def test_details_are_json(self):
        with self.recording() as recorder:
            recorder.instant(
                "plain", stack=False, number=1, text='ä\N{SNOWMAN}"\\', flag=True, none=None, list=[1, {"a": 2.5}]
            )
            with recorder.span("with", batch=3, stack=False):
                pass
            recorder.instant("name", stack=False, name="allowed")
        self.assertEqual(
            [event.details for event in recorder.recording.events() if event.role != "end"],
            [
                {"number": 1, "text": 'ä\N{SNOWMAN}"\\', "flag": True, "none": None, "list": [1, {"a": 2.5}]},
                {"batch": 3},
                {"name": "allowed"},
            ],
        )

    def test_what_is_not_json_becomes_text(self):
        class Colour(enum.Enum):
            RED = 1

        ring = []
        ring.append(ring)
        with self.recording() as recorder:
            recorder.instant("x", stack=False, path=Colour.RED, nan=float("nan"), ring=ring)
            recorder.instant("x", stack=False, bad=Unprintable(), keys={(1, 2): 3}, deep=[Unprintable()])
            recorder.instant("x", stack=False, lone="\ud800")
        events = list(recorder.recording.events())
        self.assertEqual(events[0].details, {"path": "Colour.RED", "nan": "nan", "ring": "[[...]]"})
        self.assertEqual(events[1].details, {"bad": "<Unprintable>", "keys": "{(1, 2): 3}", "deep": ["<Unprintable>"]})
        self.assertEqual(events[2].details, {"lone": "?"})

    def test_an_event_that_is_too_large_is_lost_and_reported(self):
        with self.assertWarnsRegex(RuntimeWarning, "1 event was lost"):
            with self.recording() as recorder:
                recorder.instant("x", stack=False, text="x" * 100_000)
                recorder.instant("y", stack=False)
        self.assertEqual(event_tuples(recorder.recording.events()), [("instant", "y")])


class Arguments(RecordingCase):
    def test_wrong_arguments_are_refused(self):
        with self.recording() as recorder:
            for call, error, text in [
                (lambda: recorder.begin(), TypeError, "begin"),
                (lambda: recorder.begin(3), TypeError, "name must be a str, not int"),
                (lambda: recorder.begin("a", "b"), TypeError, "begin"),
                (lambda: recorder.end("a"), TypeError, "end"),
                (lambda: recorder.span(), TypeError, r"span\(\) takes 1 positional argument"),
                (lambda: recorder.span(b"x"), TypeError, "name must be a str, not bytes"),
                (lambda: recorder.span("a", stack=1), TypeError, "stack must be a bool, not int"),
                (lambda: recorder.instant("a", "b"), TypeError, r"instant\(\) takes 1 positional argument"),
                (lambda: recorder.counter("a"), TypeError, r"counter\(\) takes 2 arguments"),
                (lambda: recorder.counter("a", "b"), TypeError, "real number|float"),
                (lambda: recorder.traceback(3), TypeError, "traceback must be a stackweave.Traceback, not int"),
                (lambda: recorder.traceback(weight=1.5), TypeError, "weight must be an int, not float"),
                (lambda: recorder.traceback(weight=2**63), ValueError, "weight must be from"),
                (lambda: recorder.traceback(heft=1), TypeError, "unexpected keyword argument 'heft'"),
                (lambda: recorder.allocation(1), TypeError, "takes 2 positional arguments"),
                (lambda: recorder.allocation(-1, 1), ValueError, "address must be from 0"),
                (lambda: recorder.allocation(1, "x"), TypeError, "size must be an int, not str"),
                (lambda: recorder.allocation(1, 2, where=3), TypeError, "unexpected keyword argument 'where'"),
                (lambda: recorder.free(2**64), ValueError, "address must be from 0"),
                (lambda: recorder.span("a")(3), TypeError, "a span decorates functions; int is not a function"),
            ]:
                with self.assertRaisesRegex(error, text):
                    call()
        self.assertEqual(list(recorder.recording.events()), [])


class States(RecordingCase):
    FEEDING = (
        lambda recording: recording.begin("x"),
        lambda recording: recording.end(),
        lambda recording: recording.instant("x"),
        lambda recording: recording.counter("x", 1),
        lambda recording: recording.traceback(),
        lambda recording: recording.allocation(1, 1),
        lambda recording: recording.free(1),
        lambda recording: recording.span("x").__enter__(),
        lambda recording: recording.pause(),
        lambda recording: recording.resume(),
    )

    def assert_refused(self, recording, text):
        for feed in self.FEEDING:
            with self.assertRaisesRegex(stackweave.StackweaveError, text):
                feed(recording)

    def test_feeding_is_refused_in_one_sentence(self):
        recording = stackweave.Recorder(self.path)
        self.assertEqual(recording.state, "new")
        self.assert_refused(recording, "the recording has not started: call start")
        recording.start()
        self.assertEqual(recording.state, "recording")
        recording.stop()
        self.assertEqual(recording.state, "stopped")
        self.assert_refused(recording, "the recording was stopped and records no more events")
        opened = stackweave.open(self.path)
        self.assertFalse([name for name in ("start", "stop", "span", "instant", "counter") if hasattr(opened, name)])

    def test_starting_again_is_refused(self):
        recording = stackweave.Recorder(self.path).start()
        with self.assertRaisesRegex(stackweave.StateError, "can be started once"):
            recording.start()
        recording.stop()
        with self.assertRaisesRegex(stackweave.StateError, "can be started once"):
            recording.start()

    def test_a_live_recording_can_not_be_read_yet(self):
        with self.recording() as recorder:
            with self.assertRaisesRegex(stackweave.StateError, "can be read when it is stopped"):
                recorder.recording.info()

    def test_an_existing_file_stays(self):
        with open(self.path, "w") as file:
            file.write("precious")
        with self.assertRaisesRegex(stackweave.StartError, "the file exists already"):
            stackweave.Recorder(self.path).start()
        with open(self.path) as file:
            self.assertEqual(file.read(), "precious")
        stackweave.Recorder(self.path, overwrite=True).start().stop()
        self.assertEqual(stackweave.open(self.path).info()["events"], 0)

    def test_a_missing_folder_is_an_error(self):
        with self.assertRaisesRegex(stackweave.StartError, "folder does not exist"):
            stackweave.Recorder(os.path.join(self.folder, "no", "out.swv")).start()

    def test_a_path_may_be_a_path_object(self):
        with stackweave.Recorder(pathlib.Path(self.path)) as recording:
            self.assertEqual(recording.path, self.path)
            self.assertIn(self.path, repr(recording))
        self.assertEqual(stackweave.open(pathlib.Path(self.path)).info()["missing"], [])

    def test_what_is_flushed_is_in_the_file(self):
        with self.recording(flush_every=1000) as recording:
            recording.instant("x", stack=False)
            recording.flush()
            opened = stackweave.open(self.path)
            self.assertEqual(event_tuples(opened.events()), [("instant", "x")])
            self.assertRegex(opened.info()["missing"][0], "not closed")
        recording.flush()

    def test_it_is_flushed_at_intervals(self):
        with self.recording(flush_every=0.01) as recording:
            recording.instant("x", stack=False)
            deadline = time.monotonic() + 30
            while stackweave.open(self.path).info()["events"] == 0 and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertEqual(stackweave.open(self.path).info()["events"], 1)

    def test_two_recordings_at_once_are_two_files(self):
        other_path = os.path.join(self.folder, "other.swv")
        with self.recording() as one, stackweave.Recorder(other_path) as other:
            for number in range(100):
                one.begin("one")
                other.instant(f"other {number}", stack=False)
                one.end()
        self.assertEqual(event_tuples(one.recording.events()), [("begin", "one"), ("end",)] * 100)
        self.assertEqual(
            event_tuples(other.recording.events()), [("instant", f"other {number}") for number in range(100)]
        )

    def test_a_stopped_recording_keeps_no_objects(self):
        class Name(str):
            pass

        class Mine(stackweave.Recorder):
            pass

        recording = Mine(self.path).start()
        detail, thing = Name("named"), threading.Event()
        recording.instant(detail, stack=False)
        recording.instant("x", stack=False, thing=thing)
        with recording.span("y", thing=thing):
            pass
        recording.stop()
        deaths = [weakref.ref(recording), weakref.ref(thing)]
        del recording, detail, thing
        gc.collect()
        self.assertEqual([death() for death in deaths], [None, None])

    def test_references_are_released(self):
        name = "a name that is used here only, so that its references can be counted"
        with self.recording() as recording:
            before = sys.getrefcount(name), sys.getrefcount(recording)
            for _ in range(100):
                recording.begin(name)
                recording.end()
                with recording.span(name):
                    pass
                with recording.span(name, detail=1):
                    pass
                recording.counter(name, 1.0)
            after = sys.getrefcount(name), sys.getrefcount(recording)
            # One of each is kept with the name, until the recording stops.
            self.assertLessEqual(after[0] - before[0], 1)
            self.assertLessEqual(after[1] - before[1], 1)
        self.assertEqual(sys.getrefcount(name), before[0])


class Costs(RecordingCase):
    def test_feeding_keeps_no_memory_and_needs_little(self):
        def feed():
            for _ in turns:
                recording.begin("x")
                recording.end()
                with recording.span("y"):
                    recording.counter("z", value)

        turns, value = [None] * 1000, 1.5
        with self.recording() as recording:
            feed()
            tracemalloc.start()
            try:
                feed()
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                feed()
                after, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        self.assertEqual(after, before)
        # Frames, iterators and bound methods are the interpreter's own.
        self.assertLess(peak - before, 2000)

    def test_recordings_are_not_pickled(self):
        with self.assertRaisesRegex(TypeError, "can't be pickled"):
            pickle.dumps(stackweave.Recorder(self.path))

    def test_nothing_is_imported_before_it_is_needed(self):
        script = """
import sys, stackweave
assert not {"json", "threading", "stackweave._recorders.recorder"} & set(sys.modules)
stackweave.Recorder
assert "stackweave._recorders.recorder" in sys.modules
try:
    stackweave.recording
except AttributeError as error:
    print(error)
"""
        done = subprocess.run([PYTHON, "-S", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "module 'stackweave' has no attribute 'recording'\n")


class Threads(RecordingCase):
    def test_each_thread_keeps_its_order_and_its_name(self):
        def work(number):
            for turn in range(500):
                with recorder.span(f"{number}"):
                    recorder.counter(f"turn {number}", turn)

        with self.recording() as recorder:
            threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        info = recorder.recording.info()["processes"][0]
        tids = {thread["name"]: thread["tid"] for thread in info["threads"]}
        for number in range(4):
            expected = []
            for turn in range(500):
                expected += [("begin", f"{number}"), ("counter", f"turn {number}", float(turn)), ("end",)]
            self.assertEqual(event_tuples(recorder.recording.events(thread=tids[f"worker {number}"])), expected)
        times = [event.time_ns for event in recorder.recording.events()]
        self.assertEqual(times, sorted(times))

    def test_a_thread_can_be_named_and_renamed(self):
        def work():
            recorder.instant("x", stack=False)
            threading.current_thread().name = "second"
            waiting.set()
            done.wait()

        waiting, done = threading.Event(), threading.Event()
        recorder = stackweave.Recorder(self.path).start()
        thread = threading.Thread(target=work, name="first")
        thread.start()
        waiting.wait()
        recorder.instant("main", stack=False)
        recorder.name_thread("the main one")
        recorder.stop()
        done.set()
        thread.join()
        names = {thread["name"] for thread in recorder.recording.info()["processes"][0]["threads"]}
        self.assertIn("second", names)

    def test_a_slow_writer_does_not_block_threads_for_ever(self):
        def feed():
            for _ in range(20_000):
                recorder.begin("x")
                recorder.end()

        with self.recording(buffer=1, when_full="block") as recorder:
            threads = [threading.Thread(target=feed) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(recorder.stop().lost, {})
        self.assertEqual(recorder.recording.info()["events"], 120_000)
