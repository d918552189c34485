"""The package leaves the loader's small reserve of thread-local memory to others, and allocates none in handlers."""

import os
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

import stackweave
from tests.support import PYTHON, ROOT, run_on_oldest_and_newest, run_python

setUpModule = run_on_oldest_and_newest

NATIVE = stackweave._native.__file__
TLS_CALLS = os.path.join(ROOT, "tests", "native", "tls_calls.c")
LIBRARY = """
__thread char words[{size}] __attribute__((tls_model("initial-exec")));
char *get(void) {{ return words; }}
"""


def library(folder, size):
    """Builds a library that needs this many bytes of the reserve."""
    path = os.path.join(folder, f"needs{size}.so")
    source = LIBRARY.format(size=size).encode()
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-o", path, "-"], input=source, check=True)
    return path


def loads(*steps):
    """Returns whether a program with these steps ends well. Each step is "stackweave" or a library."""
    lines = ["import ctypes"]
    lines += ["import stackweave" if step == "stackweave" else f"ctypes.CDLL({step!r})" for step in steps]
    done = subprocess.run([PYTHON, "-c", "\n".join(lines)], capture_output=True, text=True)
    if done.returncode:
        assert "static TLS" in done.stderr or "static thread-local" in done.stderr, done.stderr
    return done.returncode == 0


@unittest.skipUnless(shutil.which("readelf"), "there is no readelf")
class Headers(unittest.TestCase):
    def test_the_module_needs_no_static_memory(self):
        dynamic = subprocess.run(["readelf", "-dW", NATIVE], capture_output=True, text=True, check=True).stdout
        self.assertIn("(FLAGS)", dynamic)
        self.assertNotIn("STATIC_TLS", dynamic)
        relocations = subprocess.run(["readelf", "-rW", NATIVE], capture_output=True, text=True, check=True).stdout
        self.assertIn("R_X86_64_DTPMOD64", relocations)
        self.assertNotIn("R_X86_64_TPOFF64", relocations)


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Reserve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.libraries = {size: library(folder.name, size) for size in range(1024, 2560, 64)}
        # Python's own libraries use some of it.
        cls.largest = max(size for size, path in cls.libraries.items() if loads(path))

    def test_all_but_64_bytes_are_left_in_either_order(self):
        left = [path for size, path in self.libraries.items() if size <= self.largest - 64]
        self.assertTrue(left)
        for path in left[-6:]:
            self.assertTrue(loads("stackweave", path), path)
            self.assertTrue(loads(path, "stackweave"), path)

    def test_no_reserve_at_all_is_an_import_error_that_says_what_helps(self):
        code = f"import ctypes\nctypes.CDLL({self.libraries[self.largest]!r})\nimport stackweave\nprint('imported')"
        done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)
        helps = re.search(r"ImportError: no static .*(GLIBC_TUNABLES)=(\S+)", done.stderr)
        self.assertTrue(helps, done.stderr)
        environment = {**os.environ, helps[1]: helps[2]}
        done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, env=environment)
        self.assertEqual((done.stdout, done.stderr), ("imported\n", ""))

    def test_the_doctor_says_how_much_is_taken(self):
        self.assertEqual(stackweave.stats()["unwind"]["static_tls_bytes"], 64)


class Threads(unittest.TestCase):
    def test_threads_that_were_there_before_the_import_capture_and_record(self):
        run_python(
            textwrap.dedent("""
            import os, tempfile, threading
            go, ready, seen = threading.Event(), threading.Barrier(41), []
            def work(number):
                ready.wait()
                go.wait()
                seen.append([frame.name for frame in stackweave.capture().frames if frame.kind == "python"][0])
                with recording.span("work"):
                    bytearray(1 << 16)
            threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
            for thread in threads:
                thread.start()
            ready.wait()
            import stackweave
            with tempfile.TemporaryDirectory() as folder:
                recording = stackweave.Recorder(os.path.join(folder, "x.swv")).start()
                go.set()
                for thread in threads:
                    thread.join()
                summary = recording.stop()
            assert seen == ["work"] * 40, seen
            assert (summary.events, summary.lost) == (80, {}), summary
        """)
        )

    def test_the_object_has_no_number_of_a_file_as_its_name(self):
        # Otherwise code that loads a file with this number as its name would get the object.
        run_python(
            textwrap.dedent("""
            import ctypes, os
            import stackweave
            names = []
            class Info(ctypes.Structure):
                _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]
            kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
            ctypes.CDLL(None).dl_iterate_phdr(kind(lambda info, _size, _data: names.append(info[0].name) or 0), None)
            assert names.count(b"stackweave-thread-words") == 1, names
            assert not [name for name in names if name.startswith(b"/proc/")], names
        """)
        )


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Handlers(unittest.TestCase):
    def test_a_dump_looks_for_no_thread_local_memory_in_handlers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "calls.so")
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", path, TLS_CALLS, "-ldl"], check=True)
            code = """
                import ctypes, os, threading
                import stackweave
                stop, ready = threading.Event(), threading.Barrier(9)
                def wait():
                    ready.wait()
                    stop.wait()
                threads = [threading.Thread(target=wait) for _ in range(8)]
                for thread in threads:
                    thread.start()
                ready.wait()
                with open(os.devnull, "w") as file:
                    for _ in range(3):
                        stackweave.dump_threads(file)
                stop.set()
                for thread in threads:
                    thread.join()
                counts = ctypes.CDLL(os.environ["LD_PRELOAD"])
                run = ctypes.c_int.in_dll(counts, "handlers_run").value
                everywhere = ctypes.c_int.in_dll(counts, "tls_calls").value
                assert run >= 24 and everywhere > 0, (run, everywhere)
                found = ctypes.c_int.in_dll(counts, "tls_calls_in_handlers").value
                assert found == 0, found
            """
            run_python(textwrap.dedent(code), LD_PRELOAD=path)
