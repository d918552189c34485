//! What the allocator of a host does: an entry for each event, with what the event says.

use std::io;

use stackweave_recording::events::{Event, HostAction, InstantSubject, MemoryEvent, OutOfMemory, Region};

use crate::activity::LiveRange;
use crate::formats::pytorch::segments::is_large;
use crate::formats::pytorch::trace::{Device, Entry, Origin, Trace};

/// An event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostEvent {
    pub(super) kind: HostEventKind,
    /// What it is about. The address of a request that there is no memory for is how much the device has free.
    pub(super) memory: MemoryEvent,
    /// The label of what happens, or of what the program says about a block.
    frame: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostEventKind {
    Memory(HostAction),
    Snapshot,
    OutOfMemory,
    Annotation,
}

impl HostEventKind {
    /// What `PyTorch` calls it; nothing for what was there before the recording.
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

    /// Whether a host records it that knows no more than what is allocated and freed. Its events may be incomplete.
    pub(super) const fn is_plain(self) -> bool {
        use HostAction::{Allocate, Free, Segment, SegmentFree};
        matches!(self, Self::Memory(Allocate | Free | Segment | SegmentFree))
    }
}

impl HostEvent {
    /// Returns the event of a host; `None` if it is none.
    pub(super) fn of(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Allocate(memory) | Event::Free(memory) | Event::Complete(memory) => {
                Some(Self { kind: HostEventKind::Memory(memory.host?), memory: *memory, frame: 0 })
            }
            Event::Instant(instant) => {
                let (kind, memory) = match instant.about {
                    InstantSubject::HostSnapshot { device, size } => {
                        (HostEventKind::Snapshot, of_device(device, 0, size))
                    }
                    InstantSubject::Annotation { device, address } => {
                        (HostEventKind::Annotation, of_device(device, address, 0))
                    }
                    InstantSubject::OutOfMemory(OutOfMemory { device, size, stream, pool, free }) => {
                        (HostEventKind::OutOfMemory, MemoryEvent { stream, pool, ..of_device(device, free, size) })
                    }
                    _ => return None,
                };
                Some(Self { kind, memory: MemoryEvent { stack: instant.stack, ..memory }, frame: instant.frame })
            }
            _ => None,
        }
    }

    /// What it is to the host: where that allocates or frees memory.
    pub(super) const fn region(&self) -> Option<Region> {
        match self.kind {
            HostEventKind::Memory(_) => Some(self.memory.region),
            HostEventKind::Snapshot | HostEventKind::OutOfMemory | HostEventKind::Annotation => None,
        }
    }

    const fn origin(&self, tag: u32) -> Origin {
        let MemoryEvent { stack, stream, pool, size, .. } = self.memory;
        let is_expandable = matches!(self.kind, HostEventKind::Memory(HostAction::SegmentMap));
        Origin { stack, tag, stream, pool, asked: size, is_large: is_large(size), is_expandable }
    }
}

const fn of_device(device: i64, address: u64, size: u64) -> MemoryEvent {
    MemoryEvent::new(Region::Block(device), address, size)
}

impl Device {
    /// An event of a host that is about this device.
    pub(super) fn host(&mut self, event: &HostEvent, tag: u32, trace: &mut Trace<'_, '_>) -> io::Result<()> {
        if let Some(account) = &mut self.account {
            account.and_then(event, tag);
        }
        let known = self.apply(event, tag);
        let or_known = |said: u64, known: Option<u64>| if said == 0 { known.unwrap_or(0) } else { said };
        let MemoryEvent { address, size, stack, .. } = event.memory;
        let size = or_known(size, known.map(|piece| piece.value.asked.min(piece.size)));
        // What happens on a stack that was not recorded is shown where the memory comes from.
        let stack = if stack == 0 { known.map_or(0, |piece| piece.value.stack) } else { stack };
        let tag = if event.kind == HostEventKind::Annotation { event.frame } else { tag };
        let origin = Origin { stack, ..event.origin(tag) };
        for action in event.kind.actions() {
            trace.entry(&Entry { action, address, size, origin: &origin, stack: 0 })?;
        }
        Ok(())
    }

    /// Changes what is live. Gives what was known of memory that is freed.
    pub(super) fn apply(&mut self, event: &HostEvent, tag: u32) -> Option<LiveRange<Origin>> {
        let HostEventKind::Memory(action) = event.kind else { return None };
        let (memory, origin) = (&event.memory, event.origin(tag));
        let MemoryEvent { region, address, size, .. } = *memory;
        self.whole = None;
        let known = match action {
            HostAction::Allocate | HostAction::Segment | HostAction::SegmentMap => {
                if !region.is_range() {
                    self.pending.remove(&address);
                }
                self.live.allocate(memory, origin, &mut self.gone, &mut self.come);
                None
            }
            HostAction::Present | HostAction::SegmentPresent => {
                // What has happened since then is newer.
                let is_known = match region {
                    Region::Block(device) => self.live.block_at(device, address).is_some(),
                    _ => self.live.range_at(region, address).is_some(),
                };
                if !is_known {
                    self.live.allocate(memory, origin, &mut self.gone, &mut self.come);
                }
                None
            }
            HostAction::FreeCompleted => self.pending.remove(&address).or_else(|| self.free(memory)),
            HostAction::FreeRequested => {
                let known = self.free(memory);
                let unknown = || LiveRange { region, address, size, value: Origin { stack: 0, ..origin } };
                self.pending.insert(address, known.unwrap_or_else(unknown));
                known
            }
            HostAction::Free | HostAction::SegmentFree | HostAction::SegmentUnmap => self.free(memory),
        };
        self.gone.clear();
        self.come.clear();
        known
    }

    fn free(&mut self, memory: &MemoryEvent) -> Option<LiveRange<Origin>> {
        self.live.free(0, memory, &mut self.gone, &mut self.come);
        self.gone.first().copied()
    }
}
