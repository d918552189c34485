"""The benchmark's library in this interpreter: function objects that C code creates, and contenders that capture from C."""

import ctypes

PYTHON, NATIVE, WOVEN = 1, 2, 3
PART_NAMES = {PYTHON: "python", NATIVE: "native", WOVEN: "woven"}

# In the order of `Contender` in src/python/exports.rs.
_CONTENDERS = ["nothing", "ours", "torch_way", "torch"]


class Library:
    def __init__(self, path):
        # Calls through the first keep the GIL, calls through the second release it.
        held, self.released = ctypes.PyDLL(path), ctypes.CDLL(path)
        bind = held.stackweave_bench_python_bind
        bind.restype = ctypes.c_char_p
        missing = bind()
        if missing:
            raise RuntimeError(f"this Python does not export {missing.decode()}")
        for make in held.stackweave_bench_new_probe, held.stackweave_bench_new_torch_way, held.stackweave_bench_new_timed:
            make.restype = ctypes.py_object
        self.probe, self.torch_way = held.stackweave_bench_new_probe(), held.stackweave_bench_new_torch_way()
        self.timed = held.stackweave_bench_new_timed
        self.timed.argtypes = [ctypes.py_object]
        self.take_timed_ns = held.stackweave_bench_take_timed_ns
        self.take_timed_ns.restype = ctypes.c_double
        self.select = held.stackweave_bench_select
        self.select.argtypes, self.select.restype = [ctypes.c_size_t, ctypes.c_uint], None
        self.torch_way_len = held.stackweave_bench_torch_way_len
        self.torch_way_len.argtypes, self.torch_way_len.restype = [ctypes.py_object], ctypes.c_size_t
        self.torch_way_unwinds = bool(held.stackweave_bench_torch_way_unwinds())
        self.probe_frames = held.stackweave_bench_probe_frames
        self.probe_frames.argtypes, self.probe_frames.restype = [ctypes.c_size_t], ctypes.c_size_t
        self.install_ours = held.stackweave_bench_install_ours
        self.install_ours.restype = ctypes.c_char_p
        self._torch_bind = held.stackweave_bench_torch_bind
        self._torch_bind.argtypes = [ctypes.c_char_p]

    def contender(self, name):
        """Returns the number of a contender in the library."""
        return _CONTENDERS.index(name)

    def bind_torch(self, path):
        return self._torch_bind(path.encode()) == 0

    def time_each_without_gil(self, name, parts, repetitions):
        """Returns the wall-clock nanoseconds of each capture while another thread may hold the GIL, and the frames of the last."""
        samples = (ctypes.c_double * repetitions)()
        time_each = self.released.stackweave_bench_time_each
        time_each.argtypes = [ctypes.c_size_t, ctypes.c_uint, ctypes.c_size_t, ctypes.POINTER(ctypes.c_double)]
        time_each.restype = ctypes.c_size_t
        frames = time_each(self.contender(name), parts, repetitions, samples)
        return list(samples), frames
