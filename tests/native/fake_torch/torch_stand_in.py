"""Replaces the parts of torch that tests use, together with the allocator beside it."""

import ctypes
import os
import sys
import types

__version__ = "0.0.0+fake"
version = types.SimpleNamespace(cuda=os.environ.get("FAKE_TORCH_CUDA", "13.0") or None, hip=None)
DEVICES = int(os.environ.get("FAKE_TORCH_DEVICES", "2"))
LIBRARY = os.path.join(os.path.dirname(__file__), "lib", "libc10_cuda.so")
_library = ctypes.CDLL(LIBRARY)
_OBSERVER = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
_observers = []


def compiled_with_cxx11_abi():
    return True


class _C:
    @staticmethod
    def _cuda_attach_out_of_memory_observer(observer):
        _observers.append(_OBSERVER(observer))
        _library.fake_observe(_observers[-1])


class cuda(types.ModuleType):
    _queued = []  # noqa: RUF012
    _initialized = False

    class memory:
        @staticmethod
        def get_allocator_backend():
            return os.environ.get("FAKE_TORCH_BACKEND", "native")

    @staticmethod
    def device_count():
        return DEVICES

    @classmethod
    def is_initialized(cls):
        return cls._initialized

    @classmethod
    def init(cls):
        if not cls._initialized:
            _library.fake_init(DEVICES)
            for call in cls._queued:
                call()
            cls._initialized = True

    @classmethod
    def _lazy_call(cls, call):
        if cls._initialized:
            call()
        else:
            cls._queued.append(call)

    @staticmethod
    def get_device_properties(device):
        return types.SimpleNamespace(name=f"Fake {device}", total_memory=(device + 1) << 30)


sys.modules["torch.cuda"] = cuda
