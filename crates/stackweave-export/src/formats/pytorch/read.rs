//! Reads the changes of memory from the start of a recording.

use std::collections::{BTreeMap, HashMap};

use stackweave_profile::memory::{LiveChanges, LiveDevices};
use stackweave_recording::events::{Event, HostAction, HostState, MemoryEvent, Region};
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::{EventKinds, label_text};
use crate::error::ExportError;
use crate::formats::pytorch::host::{HostEvent, HostEventKind};
use crate::formats::pytorch::listing::ListingEvent;
use crate::formats::pytorch::ranges::UsedAddresses;
use crate::source::Source;

/// The name of the instant for an allocation that failed.
const OUT_OF_MEMORY: &str = "out of memory";

/// A change of memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum MemoryChange {
    /// A thread with this tag allocates memory.
    Allocate(MemoryEvent, u32),
    Free(MemoryEvent),
    /// An event of a host on a thread with this tag.
    Host {
        event: HostEvent,
        tag: u32,
    },
    /// An event of the listing with this number.
    Listing {
        number: u64,
        event: ListingEvent,
    },
    /// The thread's last free, at this address, failed.
    Keep(u64),
    /// An allocation of this size failed.
    OutOfMemory {
        size: u64,
        stack: u32,
        tag: u32,
    },
}

/// Converts the events of one process to changes.
pub(super) struct ChangeReader {
    kinds: EventKinds,
    /// The frame of each thread's tag.
    tags: HashMap<u32, u32>,
    /// The number of the listing that each thread has begun.
    listings: HashMap<u32, u64>,
    /// The number of listings so far.
    listing_count: u64,
}

impl ChangeReader {
    pub(super) fn of(process: &ProcessRecording) -> Self {
        let (tags, listings) = Default::default();
        Self { kinds: EventKinds::of(process), tags, listings, listing_count: 0 }
    }

    pub(super) fn read(&mut self, timed: &TimedEvent<'_>) -> Option<MemoryChange> {
        let event = self.kinds.decode(&timed.event);
        self.read_decoded(timed, &event)
    }

    fn read_decoded(&mut self, timed: &TimedEvent<'_>, decoded: &Event<'_>) -> Option<MemoryChange> {
        let tag = || self.tags.get(&timed.thread).copied().unwrap_or(0);
        if let Some(event) = HostEvent::of(decoded) {
            return Some(MemoryChange::Host { event, tag: tag() });
        }
        match *decoded {
            Event::Allocate(memory) => Some(MemoryChange::Allocate(memory, tag())),
            Event::Free(memory) => Some(MemoryChange::Free(memory)),
            Event::Keep { address } => Some(MemoryChange::Keep(address)),
            Event::Tag { frame } => {
                self.tags.insert(timed.thread, frame);
                None
            }
            Event::State(state) => self.listing(timed.thread, state),
            Event::Instant(instant) if label_text(timed.process.dictionary(), instant.frame) == Some(OUT_OF_MEMORY) => {
                let details = self.kinds.details(&timed.event, decoded, timed.process).object();
                let size = details.get("size").and_then(serde_json::Value::as_u64).unwrap_or(0);
                Some(MemoryChange::OutOfMemory { size, stack: instant.stack, tag: tag() })
            }
            _ => None,
        }
    }

    fn listing(&mut self, thread: u32, state: HostState) -> Option<MemoryChange> {
        let (number, event) = match state {
            HostState::Begin { .. } => {
                self.listing_count += 1;
                self.listings.insert(thread, self.listing_count);
                (self.listing_count, ListingEvent::Begin)
            }
            HostState::End => (self.listings.remove(&thread)?, ListingEvent::End),
            HostState::Segment(row) => (*self.listings.get(&thread)?, ListingEvent::Segment(row)),
            HostState::Block(row) => (*self.listings.get(&thread)?, ListingEvent::Block(row)),
            HostState::Other => return None,
        };
        Some(MemoryChange::Listing { number, event })
    }
}

/// The contents of a snapshot before its events are read.
pub(super) struct SnapshotContents {
    /// The devices of each process.
    pub(super) devices: Vec<BTreeMap<i64, DeviceMemory>>,
    /// The number of the last complete listing of each process.
    pub(super) last_listings: Vec<Option<u64>>,
    /// Whether there are spans or tags, which may have names from the program.
    pub(super) has_names: bool,
}

/// The data about a device that is needed before its events are read.
#[derive(Debug, Default)]
pub(super) struct DeviceMemory {
    /// The addresses that it ever used.
    pub(super) used: UsedAddresses,
    /// Whether its host records every event that `PyTorch`'s allocator has.
    pub(super) is_exact: bool,
}

/// Reads the recording once, to find the devices and the addresses of their blocks.
pub(super) fn find(source: &Source<'_>) -> Result<SnapshotContents, ExportError> {
    let mut readers: Vec<(ChangeReader, LiveDevices<()>)> =
        source.processes().iter().map(|process| (ChangeReader::of(process), LiveDevices::default())).collect();
    let devices = readers.iter().map(|_| BTreeMap::new()).collect();
    let mut found = SnapshotContents { devices, last_listings: vec![None; readers.len()], has_names: false };
    let mut segment_changes = LiveChanges::default();
    source.visit_events_from_start(&mut |timed| {
        let process = source.index_of(timed.process);
        let (changes, segments) = &mut readers[process];
        let event = changes.kinds.decode(&timed.event);
        found.has_names |= match event {
            Event::Begin(begin) => !begin.is_resumed,
            _ => matches!(event, Event::Tag { .. }),
        };
        let devices = &mut found.devices[process];
        let mut known = KnownSegments { segments, changes: &mut segment_changes };
        match changes.read_decoded(&timed, &event) {
            Some(MemoryChange::Allocate(memory, _)) => {
                known.allocate(&memory, &mut devices.entry(memory.region.device()).or_default().used);
            }
            Some(MemoryChange::Free(memory)) => known.free(timed.thread, &memory),
            Some(MemoryChange::Host { event, .. }) => {
                let device = devices.entry(event.memory.region.device()).or_default();
                device.is_exact |= !event.kind.is_plain();
                match event.kind {
                    HostEventKind::Memory(HostAction::SegmentFree | HostAction::SegmentUnmap | HostAction::Free) => {
                        known.free(timed.thread, &event.memory);
                    }
                    HostEventKind::Memory(_) => known.allocate(&event.memory, &mut device.used),
                    _ => {}
                }
            }
            Some(MemoryChange::Listing { event: ListingEvent::Segment(row) | ListingEvent::Block(row), .. }) => {
                devices.entry(row.device).or_default().is_exact = true;
            }
            Some(MemoryChange::Listing { event: ListingEvent::End, number }) => {
                found.last_listings[process] = Some(number);
            }
            _ => {}
        }
        segment_changes.clear();
        Ok(())
    })?;
    Ok(found)
}

/// The live segments, to find the blocks outside of them.
struct KnownSegments<'r> {
    segments: &'r mut LiveDevices<()>,
    changes: &'r mut LiveChanges<()>,
}

impl KnownSegments<'_> {
    fn allocate(&mut self, memory: &MemoryEvent, used: &mut UsedAddresses) {
        let MemoryEvent { region, address, size, .. } = *memory;
        if region.is_range() {
            used.add_range(address, size);
            self.segments.allocate(memory, (), self.changes);
        } else if self.segments.range_at(Region::Segment(region.device()), address).is_none() {
            used.add_block(address, size);
        }
    }

    fn free(&mut self, thread: u32, memory: &MemoryEvent) {
        if memory.region.is_range() {
            self.segments.free(thread, memory, self.changes);
        }
    }
}
