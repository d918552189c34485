"""The CUDA hook is built once. If it can't be built, one sentence gives the reason."""

import contextlib
import io
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from stackweave import StackweaveError
from stackweave.torch._cuda import build as cuda_build
from stackweave.torch._cuda import cache as cuda_cache
from stackweave.torch._cuda import headers as cuda_headers
from stackweave.torch._cuda import torch_state
from stackweave.torch._cuda.hook import CudaHook
from tests import cuda_support
from tests.support import ROOT, run_on_newest

setUpModule = run_on_newest


class BuildCase(unittest.TestCase):
    def setUp(self):
        self.torch = cuda_support.torch_module(cuda_support.fake_torch())
        self.folder = tempfile.mkdtemp(prefix="stackweave-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = os.path.join(self.folder, "cache")
        self.environment({cuda_cache.CACHE: self.cache, "CXX": "", "CUDA_HOME": "", "CUDA_PATH": ""})

    def environment(self, changed):
        patch = mock.patch.dict(os.environ, changed)
        patch.start()
        self.addCleanup(patch.stop)

    def build(self):
        message = io.StringIO()
        with contextlib.redirect_stderr(message):
            path = cuda_build.built_library(self.torch)
        return path, message.getvalue()

    def refused(self):
        with self.assertRaises(StackweaveError) as caught:
            self.build()
        return str(caught.exception)


class Builds(BuildCase):
    def test_once_for_a_torch_a_source_and_a_compiler(self):
        path, message = self.build()
        self.assertIn(f"is kept as {path}", message)
        self.assertEqual(os.listdir(self.cache), [os.path.basename(path)], "nothing else is left")
        self.assertEqual(self.build(), (path, ""))
        self.torch.__version__ = "0.0.1+fake"
        self.assertNotEqual(self.build()[0], path)

    def test_an_existing_library_needs_no_compiler(self):
        path, _ = self.build()
        self.environment({"PATH": self.folder})
        self.assertEqual(self.build(), (path, ""))

    def test_many_processes_may_build_at_once(self):
        program = f"""
import sys
from stackweave.torch._cuda import build as cuda_build
from tests import cuda_support
print(cuda_build.built_library(cuda_support.torch_module({os.path.dirname(self.torch.__file__)!r})))
"""
        command = [sys.executable, "-c", program]
        started = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        printed = {process.communicate()[0].strip() for process in started}
        self.assertEqual([process.returncode for process in started], [0, 0, 0])
        (path,) = printed
        self.assertEqual(os.listdir(self.cache), [os.path.basename(path)])
        CudaHook(path)

    def test_a_cache_that_can_not_be_written_is_not_used(self):
        with open(os.path.join(self.folder, "file"), "w"):
            self.environment({cuda_cache.CACHE: os.path.join(self.folder, "file", "cache")})
        program = f"""
import os
from stackweave.torch._cuda import build as cuda_build
from stackweave.torch._cuda.hook import CudaHook
from tests import cuda_support
torch = cuda_support.torch_module({os.path.dirname(self.torch.__file__)!r})
path = cuda_build.built_library(torch)
CudaHook(path)
child = os.fork()
if child == 0:
    raise SystemExit
os.waitpid(child, 0)
assert os.path.isfile(path) and cuda_build.built_library(torch) == path
print(os.path.dirname(path))
"""
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.stderr.count("it took"), 1, done.stderr)
        folder = done.stdout.strip()
        self.assertIn("stackweave-", folder)
        self.assertFalse(os.path.exists(folder), "it is removed at the end of the process")

    def test_a_library_can_be_given(self):
        path, _ = self.build()
        self.environment({cuda_build.PREBUILT: path, "PATH": self.folder})
        self.assertEqual(self.build(), (path, ""))
        self.environment({cuda_build.PREBUILT: path + ".none"})
        self.assertEqual(self.refused(), f"STACKWEAVE_CUDA_LIBRARY names a library that is not there: {path}.none")

    def test_the_name_depends_on_the_sources(self):
        name = cuda_build.library_name(self.torch)
        headers = shutil.copytree(cuda_build.STAND_IN, os.path.join(self.folder, "headers"))
        with mock.patch.object(cuda_build, "STAND_IN", headers):
            self.assertEqual(cuda_build.library_name(self.torch), name)
            with open(os.path.join(headers, "crt", "more.h"), "w") as file:
                file.write("int more;")
            self.assertNotEqual(cuda_build.library_name(self.torch), name)
        copied = shutil.copy(cuda_build.__file__, self.folder)
        with open(copied, "a") as file:
            file.write("# another flag")
        with mock.patch.object(cuda_build, "__file__", copied):
            self.assertNotEqual(cuda_build.library_name(self.torch), name)

    def test_folders_of_caches(self):
        self.environment({cuda_cache.CACHE: "", "XDG_CACHE_HOME": self.folder})
        self.assertEqual(cuda_cache.cache_folder(), os.path.join(self.folder, "stackweave"))
        self.environment({"XDG_CACHE_HOME": "", "HOME": self.folder})
        folder = os.path.join(self.folder, ".cache", "stackweave")
        self.assertEqual(cuda_cache.cache_folder(), folder)
        self.assertFalse(os.path.exists(folder), "it is created when it is needed")
        self.assertEqual(cuda_cache.writable_folder(), folder)
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)


class Trust(BuildCase):
    """Code is loaded only from folders and files that no other user can write."""

    def build_elsewhere(self, because):
        """Asserts that the hook is built again, outside of the cache, and that a message gives the reason."""
        path, message = self.build()
        self.addCleanup(cuda_cache._temporary.clear)
        self.addCleanup(cuda_cache._remove_temporary)
        self.assertNotEqual(os.path.dirname(path), self.cache)
        self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o077, 0)
        self.assertIn(because, message)
        return message

    def test_a_library_that_others_can_write(self):
        path, _ = self.build()
        os.chmod(path, 0o777)
        message = self.build()
        self.assertEqual(message[0], path, "it is built again, and replaced")
        self.assertIn(f"the CUDA hook in {path} is not loaded: {path} can be written by other users", message[1])
        self.assertEqual(os.stat(path).st_mode & 0o022, 0)
        self.assertEqual(self.build(), (path, ""))

    def test_a_folder_that_others_can_write(self):
        path, _ = self.build()
        os.chmod(self.cache, 0o777)
        message = self.build_elsewhere(f"the CUDA hook is not kept: {self.cache} can be written by other users")
        self.assertIn(f"the CUDA hook in {path} is not loaded", message)

    def test_a_folder_above_that_others_can_write(self):
        self.build()
        os.chmod(self.folder, 0o777)
        self.build_elsewhere(f"{self.folder} can be written by other users")

    def test_files_and_folders_of_other_users(self):
        path, _ = self.build()
        with mock.patch.object(os, "geteuid", return_value=os.geteuid() + 1):
            # Files of root are trusted.
            expected = None if os.getuid() == 0 else f"{path} belongs to another user"
            self.assertEqual(cuda_cache.distrust(path), expected)
        if os.getuid() == 0:
            os.chown(path, 65534, -1)
            self.assertEqual(cuda_cache.distrust(path), f"{path} belongs to another user")
            self.assertIn(f"{path} belongs to another user", self.build()[1])

    def test_links_are_followed_first(self):
        path, _ = self.build()
        other = os.path.join(self.folder, "open")
        os.mkdir(other)
        os.chmod(other, 0o777)
        moved = shutil.move(path, other)
        os.symlink(moved, path)
        self.assertIn(f"is not loaded: {other} can be written by other users", self.build()[1])

    def test_a_relative_folder_is_never_used(self):
        # Without a home folder and an entry in the list of users, "~" is not expanded.
        self.environment({cuda_cache.CACHE: "", "XDG_CACHE_HOME": "~/.cache"})
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        self.build_elsewhere("~/.cache/stackweave is not an absolute path")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_careless_umask_does_not_spoil_the_cache(self):
        self.addCleanup(os.umask, os.umask(0))
        path, _ = self.build()
        self.assertEqual(self.build(), (path, ""))


class Refusals(BuildCase):
    def test_no_compiler(self):
        self.environment({"PATH": self.folder})
        self.assertRegex(self.refused(), r"needs a C\+\+ compiler once, and none was found: install one .*\bCXX$")

    def test_a_compiler_that_is_not_there(self):
        self.environment({"CXX": "no-such-compiler -O3"})
        self.assertRegex(self.refused(), "the environment variable CXX names is not there: no-such-compiler$")

    def test_a_compiler_that_fails(self):
        self.environment({"CXX": f"{cuda_build.find_compiler()[0]} -include no-such-header.h"})
        sentence = self.refused()
        self.assertRegex(sentence, r"can't build the CUDA hook for this torch: .*error: no-such-header.h")
        log = sentence.rsplit(" ", 1)[1].rstrip(")")
        with open(log) as file:
            self.assertIn("-std=c++17", file.read(), "each attempt with its command")
        self.assertEqual(os.listdir(self.cache), [os.path.basename(log)])

    def test_a_torch_without_headers(self):
        self.torch.__file__ = os.path.join(self.folder, "torch", "__init__.py")
        self.assertRegex(self.refused(), "this torch has no headers of C[+][+] in .*/torch: install the whole package")

    def test_no_headers_of_cuda(self):
        with mock.patch.object(cuda_headers, "_HEADER", "no_such_header.h"):
            self.assertRegex(self.refused(), r"needs the headers of CUDA 13.0, and none were found: .*\bCUDA_HOME, ")

    def test_a_file_that_is_no_library(self):
        path = os.path.join(self.folder, "none.so")
        with open(path, "w") as file:
            file.write("no library")
        with self.assertRaisesRegex(StackweaveError, "the CUDA hook can't be loaded: .*none.so"):
            CudaHook(path)


class Headers(BuildCase):
    def make(self, *names, version=None):
        folder = os.path.join(self.folder, *names)
        os.makedirs(folder)
        with open(os.path.join(folder, "cuda_runtime_api.h"), "w") as file:
            file.write(f"#define CUDART_VERSION {version}\n" if version else "")
        return folder

    def test_headers_of_the_right_version_come_first(self):
        home = self.make("toolkit", "targets", "x86_64-linux", "include", version=12080)
        package = self.make("site", "nvidia", "cuda_runtime", "include", version=11080)
        torch = os.path.join(self.folder, "site", "torch")
        self.environment({"CUDA_HOME": os.path.join(self.folder, "toolkit")})
        self.assertEqual(cuda_headers.cuda_include(torch, "12.4"), home)
        self.assertEqual(cuda_headers.cuda_include(torch, "11.8"), package)
        newer = self.make("site", "nvidia", "cu13", "include", version=13000)
        self.assertEqual(cuda_headers.cuda_include(torch, "13.0"), newer)
        self.assertEqual(cuda_headers.cuda_include(torch, "99.0"), home, "another version is better than none")


class Torch(unittest.TestCase):
    def refused(self, **changed):
        module = types.SimpleNamespace(
            __version__="2.0",
            version=types.SimpleNamespace(cuda="13.0", hip=None),
            cuda=types.SimpleNamespace(
                device_count=lambda: 1, memory=types.SimpleNamespace(get_allocator_backend=lambda: "native")
            ),
        )
        for name, value in changed.items():
            setattr(module.version if name in ("cuda", "hip") else module.cuda, name, value)
        with mock.patch.dict(sys.modules, torch=module):
            try:
                self.assertIs(torch_state.usable_torch(), module)
            except StackweaveError as error:
                return str(error)
        return None

    def test_each_reason_has_its_sentence(self):
        self.assertIsNone(self.refused())
        self.assertRegex(self.refused(hip="6.0"), r"^this torch \(2.0\) is one for ROCm: only memory of CUDA devices")
        self.assertRegex(self.refused(cuda=None), r"^this torch \(2.0\) was built without CUDA: install one")
        self.assertRegex(self.refused(device_count=lambda: 0), "^torch finds no CUDA device here: ")
        pluggable = types.SimpleNamespace(get_allocator_backend=lambda: "pluggable")
        self.assertRegex(self.refused(memory=pluggable), '^torch uses the allocator "pluggable", whose events are not ')

    def test_an_allocator_that_has_nothing_to_do(self):
        with mock.patch.dict(os.environ, {torch_state.NO_CACHING: "1"}):
            self.assertRegex(self.refused(), "^PYTORCH_NO_CUDA_MEMORY_CACHING is set, .*: unset it$")

    def test_no_torch(self):
        with mock.patch.dict(sys.modules, torch=None):
            with self.assertRaisesRegex(
                StackweaveError, "^recording CUDA's memory needs torch, which can't be imported"
            ):
                torch_state.usable_torch()

    def test_names_and_sizes_of_devices(self):
        folder = tempfile.mkdtemp(prefix="stackweave-")
        self.addCleanup(shutil.rmtree, folder)
        is_initialized = False
        cuda = types.SimpleNamespace(
            device_count=lambda: 2,
            is_initialized=lambda: is_initialized,
            get_device_properties=lambda device: types.SimpleNamespace(name=f"Fake {device}", total_memory=device + 1),
        )
        torch = types.SimpleNamespace(cuda=cuda)

        def driver_says(number, text):
            os.mkdir(os.path.join(folder, str(number)))
            with open(os.path.join(folder, str(number), "information"), "w") as file:
                file.write(f"Model: \t\t {text}\nIRQ:   1\n")

        with mock.patch.object(torch_state, "DRIVER", folder):
            self.assertEqual(torch_state.device_entries(torch), {})
            driver_says(0, "Fake GPU")
            driver_says(1, "Fake GPU")
            same = {"device.0.name": "Fake GPU", "device.1.name": "Fake GPU"}
            self.assertEqual(torch_state.device_entries(torch), same)
            driver_says(2, "Other GPU")
            self.assertEqual(torch_state.device_entries(torch), {}, "only CUDA knows their order")
        is_initialized = True
        known = {"device.0.name": "Fake 0", "device.0.total": "1", "device.1.name": "Fake 1", "device.1.total": "2"}
        self.assertEqual(torch_state.device_entries(torch), known)


if __name__ == "__main__":
    unittest.main()
