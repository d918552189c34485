"""Captures native stacks in a small training loop, and symbolizes them with torch in the requested mode.

Prints the cost, the stacks, torch's name for each address, and the memory map.
"""

import ctypes
import os
import sys
import time
import warnings

warnings.simplefilter("ignore")

import torch
from torch._C._profiler import symbolize_addresses
from torch.utils._python_dispatch import TorchDispatchMode

TRACEBACKS = 301

library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
unwind = library._ZN5torch6unwind6unwindEv
unwind.argtypes, unwind.restype = [ctypes.c_void_p], ctypes.c_void_p
delete = library._ZdlPv
delete.argtypes, delete.restype = [ctypes.c_void_p], None


def capture(tracebacks):
    vector = (ctypes.c_void_p * 3)()
    unwind(ctypes.addressof(vector))
    begin, end = vector[0], vector[1]
    addresses = (ctypes.c_size_t * ((end - begin) // 8)).from_address(begin)
    tracebacks.append(list(addresses))
    delete(begin)


class CaptureEachOp(TorchDispatchMode):
    def __init__(self, tracebacks):
        super().__init__()
        self.tracebacks = tracebacks

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        capture(self.tracebacks)
        return function(*arguments, **(options or {}))


def train_until(tracebacks, count):
    nn = torch.nn
    net = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(32, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = torch.optim.Adam(net.parameters())
    while len(tracebacks) < count:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(torch.ones(4, 2, 8)), torch.zeros(4, 4))
        loss.backward()
        optimizer.step()


def children():
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            yield from file.read().split()


def cpu_ms():
    total = time.process_time_ns()
    for child in children():
        with open(f"/proc/{child}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e6


def peak_mb():
    total = 0
    for process in ["self", *children()]:
        with open(f"/proc/{process}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    return total / 1024


def main():
    mode = sys.argv[1]
    tracebacks = []
    with CaptureEachOp(tracebacks):
        train_until(tracebacks, TRACEBACKS)
    del tracebacks[TRACEBACKS:]
    addresses = [address for traceback in tracebacks for address in traceback]
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass
    start, start_peak = cpu_ms(), peak_mb()
    symbols = symbolize_addresses(addresses, mode)
    cold = cpu_ms()
    peak = peak_mb() - start_peak
    symbolize_addresses(addresses, mode)
    again = cpu_ms()
    print("figures", 0, cold - start, again - cold, peak)
    for traceback in tracebacks:
        print("traceback", *(f"{address:x}" for address in traceback))
    for address, name in {address: symbol[2] for address, symbol in zip(addresses, symbols)}.items():
        print(f"name {address:x} {name}")
    with open("/proc/self/maps") as file:
        for line in file:
            print("map", line, end="")
    sys.stdout.flush()
    # The addr2line child processes end when their input ends.
    os._exit(0)


main()
