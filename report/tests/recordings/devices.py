"""A host with two devices, and no other recorded memory. It keeps figures with which the report must agree.

    python devices.py RECORDING ACCOUNT

On the first device a pool comes, blocks wait until they are free, and in the end a request can't be met.
"""

import ctypes
import json
import sys

import stackweave
from stackweave import _native
from stackweave._recorders.memory_source import MemorySource

MIB = 1 << 20
ROUND = 512
GRAPH_POOL = 1 << 63 | 3
TOTAL = 160 * MIB
#: As in stackweave.h.
ALLOC, SEGMENT, PRESENT, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_PRESENT = 1, 3, 5, 6, 7, 8
OUT_OF_MEMORY, STATE_BEGIN, SEGMENT_STATE, BLOCK_STATE, STATE_END = 12, 15, 16, 17, 18


class Block(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("device", ctypes.c_int64),
        ("stream", ctypes.c_uint64),
        ("pool", ctypes.c_uint64),
        ("text", ctypes.c_char_p),
        ("requested", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
    )


_record_host_event = ctypes.CDLL(_native.__file__).stackweave_record_host_event


def record(what, **fields):
    block = Block(size=ctypes.sizeof(Block), **fields)
    if (status := _record_host_event(what, ctypes.byref(block), None)) != 0:
        raise SystemExit(f"stackweave_record_host_event({what}) returned {status}")


class OutOfDeviceMemory(Exception):
    pass


class Device:
    """An allocator with segments of 20 MiB, or as large as a block. It uses the first free range that fits."""

    def __init__(self, number):
        self.number = number
        self.next_address = 0x7F00_0000_0000
        #: The address, size and pool of each, and its blocks by address: [address, size, requested, state].
        self.segments = []
        self.failures = []
        self.peak = self.taken = 0

    def segment(self, size, pool, what=SEGMENT):
        address, self.next_address = self.next_address, self.next_address + 2 * size
        self.segments.append((address, size, pool, [[address, size, 0, "free"]]))
        record(what, address=address, bytes=size, device=self.number, pool=pool)

    def take(self, requested, pool=0, what=ALLOC):
        size = -(-requested // ROUND) * ROUND
        for _, _, of, pieces in self.segments:
            for at, piece in enumerate(pieces):
                if of == pool and piece[3] == "free" and piece[1] >= size:
                    rest = [piece[0] + size, piece[1] - size, 0, "free"]
                    pieces[at : at + 1] = [[piece[0], size, requested, "taken"], *([rest] if rest[1] else [])]
                    record(what, address=piece[0], bytes=requested, device=self.number, pool=pool)
                    self.taken += requested
                    self.peak = max(self.peak, self.taken)
                    return piece[0]
        room = TOTAL - sum(segment[1] for segment in self.segments)
        if max(size, 20 * MIB) > room:
            record(OUT_OF_MEMORY, address=room, bytes=requested, device=self.number, pool=pool)
            self.failures.append([requested, room])
            self.account(1)
            raise OutOfDeviceMemory(requested)
        self.segment(max(size, 20 * MIB), pool)
        return self.take(requested, pool)

    def find(self, address):
        return next(piece for segment in self.segments for piece in segment[3] if piece[0] == address)

    def free(self, address, waits=False):
        piece = self.find(address)
        self.taken -= piece[2]
        piece[3] = "pending"
        record(FREE_REQUESTED, address=address, bytes=piece[2], device=self.number)
        if not waits:
            self.complete(address)

    def complete(self, address):
        piece = self.find(address)
        record(FREE_COMPLETED, address=address, bytes=piece[2], device=self.number)
        piece[2:] = [0, "free"]

    def account(self, reason):
        """Records the state of the allocator."""
        record(STATE_BEGIN, flags=reason)
        for address, size, pool, pieces in self.segments:
            record(SEGMENT_STATE, address=address, bytes=size, device=self.number, pool=pool, flags=1)
            for at, length, requested, state in pieces:
                flags = {"free": 0, "pending": 2, "taken": 3}[state]
                record(
                    BLOCK_STATE,
                    address=at,
                    bytes=length,
                    device=self.number,
                    pool=pool,
                    requested=requested,
                    flags=flags,
                )
        record(STATE_END)

    def figures(self):
        pieces = [piece for segment in self.segments for piece in segment[3]]
        sizes = {state: [piece[1] for piece in pieces if piece[3] == state] for state in ("free", "pending", "taken")}
        return {
            "segments": len(self.segments),
            "blocks": len(pieces),
            "reserved": sum(segment[1] for segment in self.segments),
            "allocated": sum(sizes["taken"]),
            "requested": sum(piece[2] for piece in pieces if piece[3] == "taken"),
            "pending": sum(sizes["pending"]),
            "free": sum(sizes["free"]),
            "largestFree": max(sizes["free"], default=0),
        }


def weights(device):
    return [device.take(3 * MIB + 77 * n) for n in range(4)]


def activations(device, step):
    return [device.take((1 + (7 * n + step) % 5) * MIB - 100) for n in range(10)]


def train(device):
    for step in range(12):
        taken = activations(device, step)
        for at, address in enumerate(taken):
            device.free(address, waits=at % 3 == 0)
        for address in taken[::3]:
            device.complete(address)
    return [device.take(2 * MIB) for _ in range(3)]


def capture_graph(device):
    return device.take(5 * MIB, pool=GRAPH_POOL)


def too_much(device):
    activations(device, 1)
    device.free(device.take(6 * MIB), waits=True)
    try:
        device.take(200 * MIB)
    except OutOfDeviceMemory:
        return


def main(recording_path, account_path):
    recording = stackweave.memory(recording_path)
    recording._memory_source = MemorySource({"mappings": False}, own_memory=False)
    recording._sources = (recording._memory_source,)
    recording._native_options["extra"] = {"device.0.name": "NVIDIA H200", "device.0.total": str(TOTAL)}
    devices = [Device(0), Device(1)]
    with recording:
        devices[0].segment(20 * MIB, 0, SEGMENT_PRESENT)
        devices[0].take(9 * MIB, what=PRESENT)
        for device in devices:
            weights(device)
            train(device)
        capture_graph(devices[0])
        too_much(devices[0])
    account = [
        {"peak": device.peak, "failures": device.failures, "state": device.figures() if device.failures else None}
        for device in devices
    ]
    with open(account_path, "w") as out:
        json.dump(account, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
