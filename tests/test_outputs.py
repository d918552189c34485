"""An existing file stays, unless it may be replaced and the new one is complete."""

import os
import socket
import stat
import sys
import threading
import unittest
import warnings

import stackweave
from stackweave import _native
from tests.command_support import CommandCase
from tests.recordings import RecordingCase
from tests.support import PYTHON, run_on_oldest_and_newest

setUpModule = run_on_oldest_and_newest


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class StartTest(RecordingCase):
    """A recording that can't start destroys nothing."""

    def setUp(self):
        super().setUp()
        self.addCleanup(sys.setprofile, None)

    def make_old(self):
        with stackweave.Recorder(self.path) as recording:
            recording.instant("old")
        with open(self.path, "rb") as file:
            return file.read()

    def refused_start(self, path):
        sys.setprofile(lambda *_: None)
        with self.assertRaisesRegex(stackweave.StackweaveError, "profile function"):
            stackweave.trace(path, overwrite=True, mechanism="profile").start()
        sys.setprofile(None)

    def test_a_trace_that_can_not_begin_leaves_the_old_recording(self):
        old = self.make_old()
        self.refused_start(self.path)
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), old)
        self.assertEqual(os.listdir(self.folder), [os.path.basename(self.path)])

    def test_a_trace_that_can_not_begin_leaves_a_device(self):
        device = os.path.join(self.folder, "null")
        try:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            with open(device, "wb"):
                pass
        except OSError:
            self.skipTest("devices can't be made here")
        self.refused_start(device)
        self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))
        with stackweave.Recorder(device) as recording:
            recording.instant("gone")
        recording._discard()
        self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))

    def test_a_recording_that_is_discarded_removes_only_its_own_file(self):
        recording = stackweave.Recorder(self.path).start()
        os.rename(self.path, self.path + ".moved")
        with open(self.path, "w") as file:
            file.write("other")
        recording._discard()
        with open(self.path) as file:
            self.assertEqual(file.read(), "other")

    def test_code_that_names_a_recording_is_not_in_it(self):
        with stackweave.trace(self.path, c_calls=True) as trace:
            len("")
        names = {row.name for row in trace.recording.top(100, all=True)}
        self.assertIn("builtins.len", names)
        self.assertFalse([name for name in names if "publish" in name], names)

    def test_files_are_for_their_owner_only(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        with stackweave.Recorder(self.path) as recorder:
            recorder.instant("one")
        exported = os.path.join(self.folder, "out.json")
        recorder.recording.export(exported)
        ring = stackweave.Recorder(os.path.join(self.folder, "ring.swv"), ring="1MB")
        with ring:
            ring.instant("two")
        self.assertEqual([mode_of(path) for path in (self.path, exported, ring.path)], [0o600] * 3)
        os.chmod(exported, 0o640)
        recorder.recording.export(exported, overwrite=True)
        self.assertEqual(mode_of(exported), 0o640)

    def test_two_rings_with_one_path(self):
        rings = [stackweave.Recorder(self.path, ring="1MB").start() for _ in range(2)]
        for number, ring in enumerate(rings):
            ring.instant(f"of ring {number}")
        paths = [ring.stop().path for ring in rings]
        self.assertEqual(paths, [self.path, self.path.removesuffix(".swv") + "-2.swv"])
        for number, path in enumerate(paths):
            self.assertIn(f"of ring {number}", {event.name for event in stackweave.open(path).events()})

    def test_a_timing_is_saved_completely_and_replaces_no_file(self):
        with stackweave.Timing() as timing, timing.phase("one"):
            pass
        saved = os.path.join(self.folder, "saved.swv")
        self.assertEqual(timing.save(saved), saved)
        with self.assertRaises(FileExistsError):
            timing.save(saved)
        timing.save(saved, overwrite=True)
        self.assertEqual(mode_of(saved), 0o600)
        with self.assertRaisesRegex(OSError, "it is a folder"):
            timing.save(self.folder, overwrite=True)


class ExportTest(RecordingCase):
    def setUp(self):
        super().setUp()
        with stackweave.Recorder(self.path) as recording:
            recording.instant("one")
        self.recording = stackweave.open(self.path)

    def test_a_folder_of_something_else_is_not_replaced(self):
        precious = os.path.join(self.folder, "precious")
        os.makedirs(precious)
        thesis = os.path.join(precious, "thesis.txt")
        with open(thesis, "w") as file:
            file.write("years")
        for folder in (precious, self.folder, "/", os.path.join(precious, "..")):
            with self.assertRaisesRegex(OSError, "name a new folder"):
                self.recording.export(folder, format="parquet", overwrite=True)
        with open(thesis) as file:
            self.assertEqual(file.read(), "years")
        self.assertEqual(sorted(os.listdir(self.folder)), [os.path.basename(self.path), "precious"])

    def test_a_recording_is_not_replaced_by_its_export(self):
        with self.assertRaisesRegex(stackweave.ExportError, "is a recording that this export reads"):
            self.recording.export(self.path, format="json", overwrite=True)
        self.assertEqual(len(list(stackweave.open(self.path).events())), 1)

    def test_a_socket_is_written_through(self):
        path = os.path.join(self.folder, "socket")
        received = []
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()

            def receive():
                with server.accept()[0] as connection, connection.makefile("rb") as file:
                    received.append(file.read())

            reader = threading.Thread(target=receive)
            reader.start()
            self.recording.export(path, format="json")
            reader.join(60)
        self.assertIn(b'"one"', received[0])

    def test_outputs_of_the_package_are_complete_or_missing(self):
        target = os.path.join(self.folder, "copy")
        with self.assertRaisesRegex(OSError, "can't write"):
            _native.copy_to_output(os.path.join(self.folder, "none"), target, overwrite=True)
        self.assertFalse(os.path.exists(target))
        _native.write_output(target, b"one", overwrite=False)
        with self.assertRaises(FileExistsError):
            _native.write_output(target, b"two", overwrite=False)
        _native.copy_to_output(self.path, target, overwrite=True)
        self.assertEqual(os.path.getsize(target), os.path.getsize(self.path))
        self.assertEqual(_native.unused_path(target), target + "-2")


class RunTest(RecordingCase):
    def test_only_recordings_of_the_run_are_removed(self):
        stem = self.path.removesuffix(".swv")
        others = [f"{stem}.99.swv", f"{stem}.98.swv"]
        with stackweave.Recorder(others[0]) as other:
            other.instant("of another run")
        with open(others[1], "w") as file:
            file.write("no recording")
        _native.remove_recordings_of_run(others[1])
        with stackweave.Recorder(self.path) as recording:
            recording.instant("parent")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # The files of the thread that writes.
                child = os.fork()
            if child == 0:
                recording.instant("child")
                recording.stop()
                os._exit(0)
            os.waitpid(child, 0)
        self.assertEqual(_native.other_recordings_of_run(self.path), [f"{stem}.{child}.swv"])
        _native.remove_recordings_of_run(self.path)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(map(os.path.basename, others)))


class ChildTest(CommandCase):
    name = "trace"

    def test_a_child_that_can_not_make_its_file_reports_it(self):
        code = """
import os, sys, warnings, stackweave
os.mkdir("inner")
recording = stackweave.Recorder("inner/out.swv").start()
recording.instant("parent")
os.rename("inner", "moved")
if os.fork() == 0:
    recording.instant("child")
    print(recording.state, flush=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        summary = recording.stop()
    print(summary.events, "its folder does not exist" in summary.error, len(caught), flush=True)
    os._exit(0)
os.wait()
print(recording.state, recording._unrecorded_children())
"""
        status, output, errors = self.run_in(self.folder, [PYTHON, "-c", code])
        self.assertEqual((status, output), (0, b"stopped\n0 True 1\nrecording 1\n"), errors)

    def test_the_end_of_a_program_counts_children_that_could_not_record(self):
        self.write(
            "prog.py",
            "import os, shutil\nos.mkdir('away')\n"
            "def work():\n    return 1\n"
            "os.rename(os.environ['WHERE'], os.environ['WHERE'] + '.moved')\n"
            "for _ in range(2):\n    if os.fork() == 0:\n        work()\n        os._exit(0)\n    os.wait()\n"
            "os.rename(os.environ['WHERE'] + '.moved', os.environ['WHERE'])\n",
        )
        where = os.path.join(self.folder, "where")
        os.mkdir(where)
        command = [*self.command, "-o", "where/out.swv", "prog.py"]
        status, _, errors = self.run_in(self.folder, command, WHERE=where)
        self.assertEqual(status, 0, errors)
        self.assertIn(b"2 forked processes could not record: nothing could be written to ", errors)

    def test_only_children_of_this_run_are_counted(self):
        self.write(
            "prog.py",
            "import os, sys\ndef work():\n    return 1\n"
            "for _ in range(int(sys.argv[1])):\n"
            "    if os.fork() == 0:\n        work()\n        os._exit(0)\n    os.wait()\n",
        )
        command = [*self.command, "-o", "out.swv", "--overwrite", "prog.py"]
        _, _, errors = self.run_in(self.folder, [*command, "2"])
        self.assertIn(b"2 forked processes have their own: ", errors)
        self.assertIn(b" out.swv out.*.swv\n", errors)
        first = sorted(os.listdir(self.folder))
        _, _, errors = self.run_in(self.folder, [*command, "1"])
        self.assertIn(b"1 forked process has its own: ", errors)
        self.assertNotIn(b"out.*.swv", errors)
        self.assertLess(set(first), set(os.listdir(self.folder)), "those of the first run are kept")
        _, _, errors = self.run_in(self.folder, [*command, "0"])
        self.assertNotIn(b"own: ", errors)


class CommandTest(CommandCase):
    name = "record"

    def test_a_default_name_that_exists_gets_a_number(self):
        self.write("train.py", "print('ran')\n")
        # In a container, a process may have the same id each time.
        code = "import os; os.getpid = lambda: 1\nfrom stackweave.__main__ import main\nmain()"
        for _ in range(3):
            status, output, errors = self.run_in(self.folder, [PYTHON, "-c", code, "record", "train.py"])
            self.assertEqual((status, output), (0, b"ran\n"), errors)
        self.assertEqual(sorted(os.listdir(self.folder)), ["train.1-2.swv", "train.1-3.swv", "train.1.swv", "train.py"])
        self.assertIn(b"train.1-3.swv", errors)

    def test_a_dash_is_no_file(self):
        self.write("train.py", "print('ran')\n")
        status, output, errors = self.run_in(self.folder, [*self.command, "-o", "-", "train.py"])
        self.assertEqual((status, output), (2, b""))
        self.assertEqual(errors, b"stackweave record: standard output is for the program: name a file with -o\n")
        self.assertEqual(os.listdir(self.folder), ["train.py"])

    def test_a_program_that_is_not_there_leaves_no_recording(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        for arguments in (["-m", "nosuch_module"], ["-m", "nosuch.inner"], ["nosuch.py"], ["empty"]):
            plain = self.run_in(self.folder, [PYTHON, *arguments])
            recorded = self.run_in(self.folder, [*self.command, *arguments])
            self.assertNotEqual(recorded[0], 0)
            self.assertEqual(os.listdir(self.folder), ["empty"], arguments)
            if arguments[0] == "-m":
                self.assertEqual((recorded[0], recorded[2]), (plain[0], plain[2]))


if __name__ == "__main__":
    unittest.main()
