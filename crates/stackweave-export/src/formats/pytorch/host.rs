//! Writes an entry for each event of a host allocator, with the values of the event.

use std::io;

use stackweave_profile::memory::LiveRange;
use stackweave_recording::events::{Event, HostAction, InstantSubject, MemoryEvent, OutOfMemory, Region};

use crate::formats::pytorch::segments::is_large;
use crate::formats::pytorch::trace::{AllocationInfo, SnapshotDevice, TraceEntry, TraceWriter};

/// An event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostEvent {
    pub(super) kind: HostEntryKind,
    /// The memory that it is about. For a request that failed, the address is the number of free bytes of the device.
    pub(super) memory: MemoryEvent,
    /// The label of the event, or the text of an annotation.
    frame: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostEntryKind {
    Memory(HostAction),
    Snapshot,
    OutOfMemory,
    Annotation,
}

impl HostEntryKind {
    /// Returns `PyTorch`'s names for its entries. Memory that existed before the recording has none.
    const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Memory(HostAction::Allocate) => &["alloc"],
            Self::Memory(HostAction::Free) => &["free_requested", "free_completed"],
            Self::Memory(HostAction::FreeRequested) => &["free_requested"],
            Self::Memory(HostAction::FreeCompleted) => &["free_completed"],
            Self::Memory(HostAction::Segment) => &["segment_alloc"],
            Self::Memory(HostAction::SegmentMap) => &["segment_map"],
            Self::Memory(HostAction::SegmentFree) => &["segment_free"],
            Self::Memory(HostAction::SegmentUnmap) => &["segment_unmap"],
            Self::Memory(HostAction::Present | HostAction::SegmentPresent) => &[],
            Self::Snapshot => &["snapshot"],
            Self::OutOfMemory => &["oom"],
            Self::Annotation => &["annotate"],
        }
    }

    /// Returns whether hosts that report only allocations and frees record this kind. Their events may be incomplete.
    pub(super) const fn is_plain(self) -> bool {
        use HostAction::{Allocate, Free, Segment, SegmentFree};
        matches!(self, Self::Memory(Allocate | Free | Segment | SegmentFree))
    }
}

impl HostEvent {
    /// Returns the event if a host recorded it.
    pub(super) fn of(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Allocate(memory) | Event::Free(memory) | Event::Complete(memory) => {
                Some(Self { kind: HostEntryKind::Memory(memory.host?), memory: *memory, frame: 0 })
            }
            Event::Instant(instant) => {
                let (kind, memory) = match instant.about {
                    InstantSubject::HostSnapshot { device, size } => {
                        (HostEntryKind::Snapshot, of_device(device, 0, size))
                    }
                    InstantSubject::Annotation { device, address } => {
                        (HostEntryKind::Annotation, of_device(device, address, 0))
                    }
                    InstantSubject::OutOfMemory(OutOfMemory { device, size, stream, pool, free }) => {
                        (HostEntryKind::OutOfMemory, MemoryEvent { stream, pool, ..of_device(device, free, size) })
                    }
                    _ => return None,
                };
                Some(Self { kind, memory: MemoryEvent { stack: instant.stack, ..memory }, frame: instant.frame })
            }
            _ => None,
        }
    }

    /// Returns the region that it allocates or frees; `None` for other events.
    pub(super) const fn region(&self) -> Option<Region> {
        match self.kind {
            HostEntryKind::Memory(_) => Some(self.memory.region),
            HostEntryKind::Snapshot | HostEntryKind::OutOfMemory | HostEntryKind::Annotation => None,
        }
    }

    const fn info(&self, tag: u32) -> AllocationInfo {
        let MemoryEvent { stack, stream, pool, size, .. } = self.memory;
        let is_expandable = matches!(self.kind, HostEntryKind::Memory(HostAction::SegmentMap));
        AllocationInfo { stack, tag, stream, pool, requested: size, is_large: is_large(size), is_expandable }
    }
}

const fn of_device(device: i64, address: u64, size: u64) -> MemoryEvent {
    MemoryEvent::new(Region::Block(device), address, size)
}

impl SnapshotDevice {
    /// Applies an event of a host that is about this device, and writes its entries.
    pub(super) fn host_event(
        &mut self,
        event: &HostEvent,
        tag: u32,
        trace: &mut TraceWriter<'_, '_>,
    ) -> io::Result<()> {
        if let Some(listing) = &mut self.listing {
            listing.add_later(event, tag);
        }
        let known = self.apply(event, tag);
        let or_known = |given: u64, known: Option<u64>| if given == 0 { known.unwrap_or(0) } else { given };
        let MemoryEvent { address, size, stack, .. } = event.memory;
        let size = or_known(size, known.map(|range| range.value.requested.min(range.size)));
        // An event without a stack has that of the allocation.
        let stack = if stack == 0 { known.map_or(0, |range| range.value.stack) } else { stack };
        let tag = if event.kind == HostEntryKind::Annotation { event.frame } else { tag };
        let info = AllocationInfo { stack, ..event.info(tag) };
        for action in event.kind.actions() {
            trace.entry(&TraceEntry { action, address, size, info: &info, stack: 0 })?;
        }
        Ok(())
    }

    /// Updates the live memory. Returns the known range if memory is freed.
    pub(super) fn apply(&mut self, event: &HostEvent, tag: u32) -> Option<LiveRange<AllocationInfo>> {
        let HostEntryKind::Memory(action) = event.kind else { return None };
        let (memory, info) = (&event.memory, event.info(tag));
        let MemoryEvent { region, address, size, .. } = *memory;
        self.listed_segments = None;
        let known = match action {
            HostAction::Allocate | HostAction::Segment | HostAction::SegmentMap => {
                if !region.is_range() {
                    self.pending.remove(&address);
                }
                self.live.allocate(memory, info, &mut self.changes);
                None
            }
            HostAction::Present | HostAction::SegmentPresent => {
                // Later events may already have allocated it.
                let is_known = match region {
                    Region::Block(device) => self.live.block_at(device, address).is_some(),
                    _ => self.live.range_at(region, address).is_some(),
                };
                if !is_known {
                    self.live.allocate(memory, info, &mut self.changes);
                }
                None
            }
            HostAction::FreeCompleted => self.pending.remove(&address).or_else(|| self.free(memory)),
            HostAction::FreeRequested => {
                let known = self.free(memory);
                let unknown = || LiveRange::new(region, address, size, AllocationInfo { stack: 0, ..info });
                self.pending.insert(address, known.unwrap_or_else(unknown));
                known
            }
            HostAction::Free | HostAction::SegmentFree | HostAction::SegmentUnmap => self.free(memory),
        };
        self.changes.clear();
        known
    }

    fn free(&mut self, memory: &MemoryEvent) -> Option<LiveRange<AllocationInfo>> {
        self.live.free(0, memory, &mut self.changes);
        self.changes.gone.first().copied()
    }
}
