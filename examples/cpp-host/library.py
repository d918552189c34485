"""The ctypes interfaces of the host's library and of Stackweave's."""

import ctypes
import json

NO_PYTHON = 5


class StackweaveError(Exception):
    pass


class Stackweave:
    def __init__(self, path):
        self.library = ctypes.PyDLL(path)
        self.library.stackweave_last_error.restype = ctypes.c_char_p
        self.library.stackweave_resolve_json.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.library.stackweave_free_string.argtypes = [ctypes.c_void_p]
        self.without_gil = ctypes.CDLL(path)
        self.without_gil.stackweave_resolve_json.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]

    def check(self, status):
        if status:
            raise StackweaveError(status, self.library.stackweave_last_error().decode())

    def enable_python(self):
        self.check(self.library.stackweave_enable_python())

    def resolve(self, stacks):
        """Returns the frames of each stack, innermost first, as dicts."""
        numbers, text = (ctypes.c_uint64 * len(stacks))(*stacks), ctypes.c_void_p()
        self.check(self.without_gil.stackweave_resolve_json(numbers, len(stacks), ctypes.byref(text)))
        resolved = json.loads(ctypes.string_at(text))
        self.check(self.library.stackweave_free_string(text))
        return resolved


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int)
CALLBACK_WITH_GIL = ctypes.PYFUNCTYPE(ctypes.c_int)


def load_host(path, loader):
    """Loads the host. `loader`: ctypes.CDLL releases the GIL around each call, ctypes.PyDLL keeps it."""
    host = loader(path)
    host.host_allocate.restype = ctypes.c_uint64
    host.host_allocate.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    host.host_free.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    host.host_stop_workers.restype = ctypes.c_uint64
    host.host_witnesses.restype = ctypes.c_size_t
    host.host_functions_of.restype = ctypes.c_char_p
    host.host_functions_of.argtypes = [ctypes.c_uint64]
    return host


def witnesses(host):
    """Returns every pair of truth and stack, and its count."""
    words = ctypes.POINTER(ctypes.c_uint64)()
    count = host.host_witnesses(ctypes.byref(words))
    return [(words[3 * i], words[3 * i + 1], words[3 * i + 2]) for i in range(count)]
