"""What was used of the memory of devices: what `devices()` gives. Imported when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ._native import usage_frames
from ._printable import printable
from ._sizes import count_text, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._native import Frame

#: Why an allocator gave an account of itself, by number.
REASONS = ("end", "out of memory", "asked")
#: So many frames of a request that failed are in a text.
FRAMES = 6


class DeviceMoment(NamedTuple):
    """How much there was of a device's memory, or of a pool's, in bytes."""

    #: In seconds since the recording began.
    time: float
    #: In use, as it was asked for.
    allocated: int
    #: Freed by the program, and not yet free to use: other streams may be at work with it.
    pending: int
    #: In the segments that blocks lie in.
    reserved: int


class DevicePool(NamedTuple):
    """What was used of a pool."""

    pool: int
    #: "default", "graph 3" for that of a graph, "pool 5" for one that the program made.
    name: str
    peak: DeviceMoment
    #: (seconds, allocated, reserved): the highest of each part of the time.
    points: list[tuple[float, int, int]]

    def __repr__(self) -> str:
        return f"<stackweave.DevicePool {self.name}: peak {size_text(self.peak.allocated)}>"


class DeviceState(NamedTuple):
    """What an allocator had, by its own account, at a moment. In bytes, but for segments and blocks."""

    #: In seconds since the recording began.
    time: float
    #: Why it was asked: "end" of the recording, "out of memory", or "asked" by a dump.
    reason: str
    segments: int
    #: In use or not.
    blocks: int
    reserved: int
    #: Blocks in use, as large as they really are.
    allocated: int
    #: What was asked for of these.
    requested: int
    pending: int
    #: Blocks in segments that nobody uses.
    free: int
    largest_free: int
    #: (pool, reserved, allocated, free)
    pools: list[tuple[int, int, int, int]]

    @property
    def fragmentation(self) -> float:
        """The part of what is free that is not in the largest free block: 0.0 if all is in one."""
        return 1 - self.largest_free / self.free if self.free else 0.0

    @property
    def rounding(self) -> int:
        """The bytes that blocks in use are larger than they were asked to be."""
        return self.allocated - self.requested


class FailedRequest(NamedTuple):
    """A request that there was no memory for."""

    #: In seconds since the recording began.
    time: float
    #: How many bytes were asked for.
    size: int
    #: How many the device had free.
    free: int
    pool: int
    #: Where from; None if that is not known.
    traceback: Any

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Where from, innermost first."""
        return () if self.traceback is None else tuple(self.traceback.frames)

    def __repr__(self) -> str:
        return f"<stackweave.FailedRequest {size_text(self.size)}, {size_text(self.free)} free>"


class DeviceMemory(NamedTuple):
    """What a process has used of the memory of a device. Its text is a table."""

    device: int
    #: The process.
    process: int
    #: What the device is called, and how many bytes it has, if that was recorded.
    name: str | None
    total: int | None
    #: When most was in use.
    peak: DeviceMoment
    #: When the segments were largest.
    reserved_peak: DeviceMoment
    #: (seconds, allocated, reserved): the highest of each part of the time, some thousands.
    points: list[tuple[float, int, int]]
    pools: list[DevicePool]
    #: The last account that the allocator gave of itself.
    state: DeviceState | None
    out_of_memory: list[FailedRequest]

    @property
    def reserved(self) -> int:
        """The most bytes that segments had."""
        return self.reserved_peak.reserved

    def __str__(self) -> str:
        return printable("\n".join(_lines(self)))

    def __repr__(self) -> str:
        used = f"peak {size_text(self.peak.allocated)}, reserved up to {size_text(self.reserved)}"
        return f"<stackweave.DeviceMemory {self.device}: {used}>"


class Devices(list[DeviceMemory]):
    """A list of DeviceMemory, by device and process. Its text is a table of each."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) if self else "no memory of devices"


def devices_of(read: Iterable[dict[str, Any]]) -> Devices:
    """What was read of a recording, as objects."""
    return Devices(_device(device) for device in read)


def _device(read: dict[str, Any]) -> DeviceMemory:
    made = {
        **read,
        "peak": DeviceMoment(*read["peak"]),
        "reserved_peak": DeviceMoment(*read["reserved_peak"]),
        "pools": [DevicePool(**{**pool, "peak": DeviceMoment(*pool["peak"])}) for pool in read["pools"]],
        "state": None if read["state"] is None else _state(read["state"]),
        "out_of_memory": [FailedRequest(**failed) for failed in read["out_of_memory"]],
    }
    return DeviceMemory(**made)


def _state(read: dict[str, Any]) -> DeviceState:
    reason = read["reason"]
    return DeviceState(**{**read, "reason": REASONS[min(reason, len(REASONS) - 1)]})


def _lines(device: DeviceMemory) -> Iterator[str]:
    total = None if device.total is None else size_text(device.total)
    about = [text for text in (device.name, total) if text is not None]
    yield f"device {device.device}" + (f": {', '.join(about)}" if about else "")
    peak, most = device.peak, device.reserved_peak
    used = f"{size_text(peak.allocated)} in use, {size_text(peak.reserved)} reserved"
    yield f"  peak        {used}, {duration_text(peak.time)} after the start"
    yield f"  reserved    up to {size_text(most.reserved)}, {duration_text(most.time)} after the start"
    if device.points:
        _, allocated, reserved = device.points[-1]
        yield f"  at the end  {size_text(allocated)} in use, {size_text(reserved)} reserved"
    if device.state is not None:
        yield from _state_lines(device.state)
    if any(pool.pool for pool in device.pools):
        yield from _pool_lines(device.pools)
    for failed in device.out_of_memory:
        yield from _failed_lines(failed)


def _state_lines(state: DeviceState) -> Iterator[str]:
    free = f"{size_text(state.free)} of {size_text(state.reserved)} in {count_text(state.segments, 'segment')}"
    when = " when a request failed" if state.reason == "out of memory" else ""
    yield f"  free        {free}{when}, {state.fragmentation:.1%} fragmented"
    if state.pending:
        yield f"  pending     {size_text(state.pending)} freed, and not yet free to use"
    if state.rounding > 0:
        yield f"  rounding    {size_text(state.rounding)} more than was asked for"


def _pool_lines(pools: list[DevicePool]) -> Iterator[str]:
    yield f"  {'peak':>10} {'reserved':>10}  pool"
    for pool in sorted(pools, key=lambda pool: pool.peak.allocated, reverse=True):
        yield f"  {size_text(pool.peak.allocated):>10} {size_text(pool.peak.reserved):>10}  {pool.name}"


def _failed_lines(failed: FailedRequest) -> Iterator[str]:
    asked = f"{size_text(failed.size)} asked for, {size_text(failed.free)} free"
    yield f"  out of memory {duration_text(failed.time)} after the start: {asked}"
    frames = usage_frames(failed.frames)
    for frame in frames[:FRAMES]:
        yield f"    by {frame}"
    if len(frames) > FRAMES:
        yield f"    and {count_text(len(frames) - FRAMES, 'more caller')}"


for _public in (DeviceMoment, DevicePool, DeviceState, FailedRequest, DeviceMemory):
    _public.__module__ = "stackweave"
