"""The memory of devices: what `devices()` returns. Imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._native import usage_frames
from .._printable import printable
from .._sizes import count_text, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .._native import Frame

#: The reasons why the state of an allocator was recorded, by number.
REASONS = ("end", "out of memory", "dump")
#: The most frames of a failed request in a text.
FRAMES = 6


class DeviceMoment(NamedTuple):
    """How much of the memory of a device, or of a pool, was used at a moment, in bytes.

    >>> moment = stackweave.DeviceMoment(time=0.5, allocated=1024, pending=0, reserved=4096)
    >>> moment.reserved - moment.allocated
    3072
    """

    #: In seconds since the recording began.
    time: float
    #: In use, as the program requested it.
    allocated: int
    #: Freed by the program, but not reusable yet: other streams may still use it.
    pending: int
    #: In the segments that contain the blocks.
    reserved: int


class DevicePool(NamedTuple):
    """The memory of one pool of a device.

    >>> moment = stackweave.DeviceMoment(time=0.5, allocated=1024, pending=0, reserved=4096)
    >>> stackweave.DevicePool(pool=0, name="default", peak=moment, points=[])
    <stackweave.DevicePool default: peak 1.00 KiB>
    """

    pool: int
    #: "default", "graph 3" for that of a graph, "pool 5" for one that the program made.
    name: str
    peak: DeviceMoment
    #: (seconds, allocated, reserved): the highest values of each interval.
    points: list[tuple[float, int, int]]

    def __repr__(self) -> str:
        return f"<stackweave.DevicePool {self.name}: peak {size_text(self.peak.allocated)}>"


class DeviceState(NamedTuple):
    """The state of an allocator at a moment, as it reported it. In bytes, except for segments and blocks.

    >>> with stackweave.memory("heap.swv"):
    ...     main()
    >>> [device.state for device in stackweave.open("heap.swv").memory().devices()]
    []
    """

    #: In seconds since the recording began.
    time: float
    #: The reason why it was recorded: "end" of the recording, "out of memory", or a "dump".
    reason: str
    segments: int
    #: All blocks, in use or free.
    blocks: int
    reserved: int
    #: Blocks in use, with their real sizes.
    allocated: int
    #: Blocks in use, with the sizes that the program requested.
    requested: int
    pending: int
    #: Free blocks in segments.
    free: int
    largest_free: int
    #: (pool, reserved, allocated, free)
    pools: list[tuple[int, int, int, int]]

    @property
    def fragmentation(self) -> float:
        """The share of free bytes outside of the largest free block: 0.0 if all are in one block."""
        return 1 - self.largest_free / self.free if self.free else 0.0

    @property
    def rounding(self) -> int:
        """The bytes by which blocks in use are larger than requested."""
        return self.allocated - self.requested


class FailedRequest(NamedTuple):
    """A request that failed because there was no memory for it.

    >>> stackweave.FailedRequest(time=0.5, size=2048, free=1024, pool=0, traceback=None)
    <stackweave.FailedRequest 2.00 KiB, 1.00 KiB free>
    """

    #: In seconds since the recording began.
    time: float
    #: The requested bytes.
    size: int
    #: The free bytes of the device.
    free: int
    pool: int
    #: The stack of the request; None if it is not known.
    traceback: Any

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the stack, innermost first."""
        return () if self.traceback is None else tuple(self.traceback.frames)

    def __repr__(self) -> str:
        return f"<stackweave.FailedRequest {size_text(self.size)}, {size_text(self.free)} free>"


class DeviceMemory(NamedTuple):
    """The memory of a device that a process used. Its text is a table.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     main()
    >>> print(recorder.recording.memory().devices())
    no memory of devices
    """

    device: int
    #: The process.
    process: int
    #: The name of the device, and its total bytes, if they were recorded.
    name: str | None
    total: int | None
    #: The moment with most bytes in use.
    peak: DeviceMoment
    #: The moment with most reserved bytes.
    reserved_peak: DeviceMoment
    #: (seconds, allocated, reserved): the highest values of each of some thousand intervals.
    points: list[tuple[float, int, int]]
    pools: list[DevicePool]
    #: The last state of the allocator that was recorded.
    state: DeviceState | None
    out_of_memory: list[FailedRequest]

    @property
    def reserved(self) -> int:
        """The most bytes that were reserved."""
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
    """Converts the devices of the native module."""
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
        yield f"  pending     {size_text(state.pending)} freed, and not reusable yet"
    if state.rounding > 0:
        yield f"  rounding    {size_text(state.rounding)} more than requested"


def _pool_lines(pools: list[DevicePool]) -> Iterator[str]:
    yield f"  {'peak':>10} {'reserved':>10}  pool"
    for pool in sorted(pools, key=lambda pool: pool.peak.allocated, reverse=True):
        yield f"  {size_text(pool.peak.allocated):>10} {size_text(pool.peak.reserved):>10}  {pool.name}"


def _failed_lines(failed: FailedRequest) -> Iterator[str]:
    request = f"{size_text(failed.size)} requested, {size_text(failed.free)} free"
    yield f"  out of memory {duration_text(failed.time)} after the start: {request}"
    frames = usage_frames(failed.frames)
    for frame in frames[:FRAMES]:
        yield f"    by {frame}"
    if len(frames) > FRAMES:
        yield f"    and {count_text(len(frames) - FRAMES, 'more caller')}"


for _public in (DeviceMoment, DevicePool, DeviceState, FailedRequest, DeviceMemory):
    _public.__module__ = "stackweave"
