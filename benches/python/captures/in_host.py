"""Allocates and frees a block in the example host, with a captured stack for each call, which is dropped with the block.

python in_host.py LIBRARY EFFORT LIBSTACKWEAVE LIBHOST

Measures wall-clock time, because a waiting thread uses no CPU time. Figures exclude the same block without captures.
"""

import ctypes
import statistics
import sys
import threading

from contenders import Absent, Torch
from library import Library
from report import report_result, version

LEVELS = 20
# The numbers of samples, and of blocks in an uncontended sample.
SAMPLES, BLOCKS = {"quick": 15, "full": 60}, 200
BENCHES = "quiet", "with-gil", "contended"
NOTHING, OURS = 0, 1


class Host:
    def __init__(self, path):
        self.without_gil, self.with_gil = ctypes.CDLL(path), ctypes.PyDLL(path)
        for library in self.without_gil, self.with_gil:
            library.host_time_blocks.restype = library.host_time_block_after_pause.restype = ctypes.c_double
            library.host_time_blocks.argtypes = [ctypes.c_size_t]

    def timed(self, bench):
        """Returns a function that times a block. A pause lets the other thread take the GIL, which it can't do otherwise."""
        if bench == "contended":
            return self.without_gil.host_time_block_after_pause
        library = self.with_gil if bench == "with-gil" else self.without_gil
        return lambda: library.host_time_blocks(BLOCKS)

    def select(self, recorder):
        if isinstance(recorder, int):
            self.without_gil.host_set_recorder(recorder)
        else:
            self.without_gil.host_set_recorder_functions(*recorder)


def descend(levels, leaf):
    return descend(levels - 1, leaf) if levels else leaf()


def recorders(library, own, stackweave):
    """Yields each recorder's name, its selection, and a function that returns the frames of a capture, or why it is absent."""
    yield "ours", OURS, lambda: frames_of_ours(stackweave)
    if library.torch_way_unwinds:
        capture, length, drop = (own[f"stackweave_bench_host_torch_way_{name}"] for name in ("capture", "len", "drop"))
        capture.restype = ctypes.c_uint64
        length.restype, length.argtypes = ctypes.c_size_t, [ctypes.c_uint64]
        drop.argtypes = [ctypes.c_uint64]

        def frames():
            traceback = capture()
            count = length(traceback)
            drop(traceback)
            return count

        yield "PyTorch's way", (capture, drop), frames
    else:
        yield "PyTorch's way", None, "not installed: libunwind"
    try:
        torch = Torch(library)
        if not library.bind_torch(torch.big_library):
            raise Absent("CapturedTraceback::gather is not exported")
    except Absent as absent:
        yield "torch", None, str(absent)
    else:
        capture, drop = own.stackweave_bench_host_torch_capture, own.stackweave_bench_host_torch_drop
        capture.restype = ctypes.c_uint64
        yield "torch", (capture, drop), capture


def frames_of_ours(stackweave):
    stack, count = ctypes.c_uint64(), ctypes.c_uint32()
    stackweave.stackweave_capture(None, ctypes.byref(stack), None)
    stackweave.stackweave_get_frame_count(stack, ctypes.byref(count))
    return count.value


def spin(stop):
    while not stop:
        pass


def measure(bench, host, chosen, effort):
    timed = host.timed(bench)
    costs = {name: [] for name in chosen}
    for _ in range(SAMPLES[effort]):
        for name, recorder in chosen.items():
            host.select(recorder)
            costs[name].append(descend(LEVELS, timed))
    return {name: statistics.median(cost) for name, cost in costs.items()}


def main():
    library, effort = Library(sys.argv[1]), sys.argv[2]
    own, stackweave, host = ctypes.PyDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[3]), Host(sys.argv[4])
    stackweave.stackweave_get_frame_count.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    if stackweave.stackweave_enable_python():
        raise SystemExit("stackweave_enable_python failed")
    case = f"{version()}, woven {LEVELS}"
    chosen, frames = {"nothing": NOTHING}, {}
    for name, recorder, count in recorders(library, own, stackweave):
        if recorder is None:
            for bench in BENCHES:
                report_result(f"host/{bench}", case, "us", name, absent=count)
            continue
        frames[name] = descend(LEVELS, count)
        if frames[name] < LEVELS:
            raise SystemExit(f"{name} captured {frames[name]} frames")
        chosen[name] = recorder
    for bench in BENCHES:
        stop = []
        thread = threading.Thread(target=spin, args=(stop,))
        if bench == "contended":
            thread.start()
        costs = measure(bench, host, chosen, effort)
        stop.append(True)
        if bench == "contended":
            thread.join()
        for name in frames:
            report_result(f"host/{bench}", case, "us", name, cost=(costs[name] - costs["nothing"]) / 1e3, frames=frames[name])


if __name__ == "__main__":
    main()
