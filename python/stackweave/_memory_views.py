"""What can be asked about memory, of a recorder that runs and of a recording that is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ._memory_usage import Usage, _Figures
from ._native import RecordingError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._memory_devices import Devices

#: The device that stands for the process's own memory.
OWN = -1
#: The allocator of blocks that were there when the recording began: nobody leaks them.
PRESENT = "host-present"
#: Which figures a view is of: blocks, and bytes.
PEAK = ("peak_blocks", "peak_bytes")
LIVE = ("live_blocks", "live_bytes")
TEMPORARY = ("temporary", "temporary_bytes")


class MemoryTotals(NamedTuple):
    """What was taken and given back in all. Bytes are those that were asked for."""

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
    #: Frees of what was taken before the recording began.
    unknown_frees: int
    #: Blocks that were taken where one was live, which counts as freed.
    replaced: int


class SizeClass(NamedTuple):
    """Blocks of more than half of `most` bytes, and at most `most`."""

    most: int
    allocations: int
    bytes: int
    live_blocks: int
    live_bytes: int
    peak_blocks: int
    peak_bytes: int


class GroupUsage(NamedTuple):
    """What a thread, or a tag, has used."""

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
    """The views. Who has them gives the figures of each device."""

    __slots__ = ()

    def _memory_devices(self, rows: bool) -> list[dict[str, Any]]:
        """Figures of each device; by place only if rows are wanted, of which there may be very many."""
        raise NotImplementedError

    def _device_histories(self) -> list[dict[str, Any]]:
        """What was read of the memory of devices."""
        raise NotImplementedError

    def _memory_now(self) -> float:
        """The moment that the figures are of, in seconds since the recording began."""
        raise NotImplementedError

    def _is_estimated(self) -> bool:
        raise NotImplementedError

    def peak(self, *, device: int | None = None) -> Usage:
        """What was in use when that was most.

        device chooses memory of a host's allocator; without it, it is the process's own, or that of the first device if
        nothing else was recorded.
        """
        found = self._memory_device(device)
        return self._usage("peak", found, PEAK, _totals(found).peak_time)

    def current(self, *, device: int | None = None) -> Usage:
        """What is in use: now, or when the recording ended."""
        return self._usage("current", self._memory_device(device), LIVE, self._memory_now())

    def leaks(self, *, device: int | None = None) -> Usage:
        """What was taken since the recording began, and is not freed: up to now, or at its end."""
        return self._usage("leaks", _since_the_beginning(self._memory_device(device)), LIVE, self._memory_now())

    def temporary(self, *, device: int | None = None) -> Usage:
        """What was freed before its thread had taken many other blocks: how much, in all."""
        return self._usage("temporary", self._memory_device(device), TEMPORARY, self._memory_now())

    def totals(self, *, device: int | None = None) -> MemoryTotals:
        """What was taken and given back in all."""
        return _totals(self._memory_device(device, rows=False))

    def sizes(self, *, device: int | None = None) -> list[SizeClass]:
        """How much blocks of each size have used, the smallest first."""
        rows = self._memory_device(device, rows=False)["sizes"]
        return sorted(SizeClass(*(row[field] for field in SizeClass._fields)) for row in rows)

    def threads(self, *, device: int | None = None) -> list[GroupUsage]:
        """How much each thread has used, the highest share of the peak first."""
        rows = self._memory_device(device)["rows"]
        return _groups(rows, lambda row: (row["thread_name"], row["thread"]))

    def tags(self, *, device: int | None = None) -> list[GroupUsage]:
        """How much was used under each tag of memory_tag(), the highest share of the peak first."""
        return _groups(self._memory_device(device)["rows"], lambda row: (row["tag"], None))

    def devices(self) -> Devices:
        """What was used of the memory of devices over time, with its segments and pools, and what failed.

        While it records, up to now. It takes the history: a recording with mode="aggregate" has none.
        """
        from ._memory_devices import devices_of

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
    """The process's own memory, unless there is only that of devices."""
    used = (
        device["device"] for device in devices if any(device["totals"][name] for name in ("peak_bytes", "allocations"))
    )
    return min(used, default=OWN)


def _since_the_beginning(device: dict[str, Any]) -> dict[str, Any]:
    """The same, without blocks that were there before."""
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
        for place, field in enumerate(summed):
            sums[place] += row[field]
    found = [GroupUsage(name, thread, *sums) for (name, thread), sums in groups.items()]
    return sorted(found, key=lambda group: (group.peak_bytes, group.bytes), reverse=True)


for _public in (MemoryTotals, SizeClass, GroupUsage):
    _public.__module__ = "stackweave"
