"""The views of memory, of a recorder that runs and of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._native import RecordingError
from .memory_usage import Usage, _Figures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .memory_devices import Devices

#: The number for the memory of the process, which is no device.
OWN = -1
#: The allocator of blocks that were live when the recording began, which are no leaks.
PRESENT = "host-present"
#: The fields of each view: blocks, and bytes.
PEAK = ("peak_blocks", "peak_bytes")
LIVE = ("live_blocks", "live_bytes")
TEMPORARY = ("temporary", "temporary_bytes")


class MemoryTotals(NamedTuple):
    """The sums of allocations and frees. Bytes are those that the program requested.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    >>> totals = recorder.recording.memory().totals()
    >>> totals.allocations >= 1, totals.live_bytes >= 1_000_000
    (True, True)
    """

    allocations: int
    bytes: int
    frees: int
    live_blocks: int
    live_bytes: int
    peak_blocks: int
    peak_bytes: int
    #: In seconds since the recording began.
    peak_time: float
    #: Allocations that were freed before their thread had made more than `temporary` others.
    temporary: int
    temporary_bytes: int
    #: Frees of blocks that were allocated before the recording began.
    unknown_frees: int
    #: Allocations at the address of a live block, which counts as freed.
    replaced: int


class SizeClass(NamedTuple):
    """Blocks of more than half of `most` bytes, and at most `most`.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    >>> [size.allocations for size in recorder.recording.memory().sizes() if size.most == 1 << 20]
    [1]
    """

    most: int
    allocations: int
    bytes: int
    live_blocks: int
    live_bytes: int
    peak_blocks: int
    peak_bytes: int


class GroupUsage(NamedTuple):
    """The memory of a thread, or of a tag.

    >>> with stackweave.memory("heap.swv") as recorder:
    ...     block = bytearray(1_000_000)
    >>> [group.name for group in recorder.recording.memory().threads()]
    ['MainThread']
    """

    #: The name of the thread, or the tag; None for what has no tag.
    name: str | None
    #: The number that the system has given to the thread; None for a tag.
    thread: int | None
    allocations: int
    bytes: int
    live_blocks: int
    live_bytes: int
    peak_blocks: int
    peak_bytes: int


class MemoryViews:
    """The views. Subclasses provide the figures of each device."""

    __slots__ = ()

    def _memory_devices(self, rows: bool) -> list[dict[str, Any]]:
        """Returns the figures of each device, with a row for each stack if rows are needed: they may be many."""
        raise NotImplementedError

    def _device_histories(self) -> list[dict[str, Any]]:
        """Returns the histories of the memory of devices."""
        raise NotImplementedError

    def _memory_now(self) -> float:
        """Returns the moment of the figures, in seconds since the recording began."""
        raise NotImplementedError

    def _is_estimated(self) -> bool:
        raise NotImplementedError

    def peak(self, *, device: int | None = None) -> Usage:
        """Returns what was live when most memory was.

        device selects the memory of a host's allocator. The default is the memory of the process, or of the first
        device if nothing else was recorded.
        """
        found = self._memory_device(device)
        return self._usage("peak", found, PEAK, _totals(found).peak_time)

    def current(self, *, device: int | None = None) -> Usage:
        """Returns what is live: now, or when the recording ended."""
        return self._usage("current", self._memory_device(device), LIVE, self._memory_now())

    def leaks(self, *, device: int | None = None) -> Usage:
        """Returns what was allocated since the recording began and not freed: up to now, or at its end."""
        return self._usage("leaks", _since_the_beginning(self._memory_device(device)), LIVE, self._memory_now())

    def temporary(self, *, device: int | None = None) -> Usage:
        """Returns what was freed before its thread made many other allocations: the sums over all time."""
        return self._usage("temporary", self._memory_device(device), TEMPORARY, self._memory_now())

    def totals(self, *, device: int | None = None) -> MemoryTotals:
        """Returns the sums of allocations and frees."""
        return _totals(self._memory_device(device, rows=False))

    def sizes(self, *, device: int | None = None) -> list[SizeClass]:
        """Returns the memory by size of blocks, the smallest first."""
        rows = self._memory_device(device, rows=False)["sizes"]
        return sorted(SizeClass(*(row[field] for field in SizeClass._fields)) for row in rows)

    def threads(self, *, device: int | None = None) -> list[GroupUsage]:
        """Returns the memory of each thread, the highest share of the peak first."""
        rows = self._memory_device(device)["rows"]
        return _groups(rows, lambda row: (row["thread_name"], row["thread"]))

    def tags(self, *, device: int | None = None) -> list[GroupUsage]:
        """Returns the memory of each tag of memory_tag(), the highest share of the peak first."""
        return _groups(self._memory_device(device)["rows"], lambda row: (row["tag"], None))

    def devices(self) -> Devices:
        """Returns the memory of devices over time, with its segments and pools, and failed requests.

        It needs the history: a recording with mode="aggregate" has none.
        """
        from .memory_devices import devices_of

        return devices_of(self._device_histories())

    def _usage(self, name: str, device: dict[str, Any], names: tuple[str, str], time: float) -> Usage:
        totals = device["totals"]
        figures = _Figures(totals[names[1]], totals[names[0]], time, self._is_estimated())
        return Usage(name, figures, device["rows"], names)

    def _memory_device(self, device: int | None, *, rows: bool = True) -> dict[str, Any]:
        devices = self._memory_devices(rows)
        number = _default_device(devices) if device is None else device
        for found in devices:
            if found["device"] == number:
                return found
        raise RecordingError(f"nothing was recorded about memory of device {device}")


def _default_device(devices: Iterable[dict[str, Any]]) -> int:
    """Returns the number for the memory of the process, unless only memory of devices was recorded."""
    used = (
        device["device"] for device in devices if any(device["totals"][name] for name in ("peak_bytes", "allocations"))
    )
    return min(used, default=OWN)


def _since_the_beginning(device: dict[str, Any]) -> dict[str, Any]:
    """Returns the figures without blocks that were live when the recording began."""
    before = [row for row in device["rows"] if row["allocator"] == PRESENT]
    if not before:
        return device
    live = {name: device["totals"][name] - sum(row[name] for row in before) for name in LIVE}
    rows = [row for row in device["rows"] if row["allocator"] != PRESENT]
    return {**device, "rows": rows, "totals": {**device["totals"], **live}}


def _totals(device: dict[str, Any]) -> MemoryTotals:
    return MemoryTotals(*(device["totals"][field] for field in MemoryTotals._fields))


def _groups(rows: Iterable[dict[str, Any]], key: Any) -> list[GroupUsage]:
    summed = GroupUsage._fields[2:]
    groups: dict[tuple[str | None, int | None], list[int]] = {}
    for row in rows:
        sums = groups.setdefault(key(row), [0] * len(summed))
        for index, field in enumerate(summed):
            sums[index] += row[field]
    found = [GroupUsage(name, thread, *sums) for (name, thread), sums in groups.items()]
    return sorted(found, key=lambda group: (group.peak_bytes, group.bytes), reverse=True)


for _public in (MemoryTotals, SizeClass, GroupUsage):
    _public.__module__ = "stackweave"
