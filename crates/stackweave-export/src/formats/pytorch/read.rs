//! Reads the changes of memory from the start of a recording.

use std::collections::{BTreeMap, HashMap};

use stackweave_core::EventKind;
use stackweave_profile::memory::{LiveChanges, LiveDevices};
use stackweave_recording::events::{Event, HostAction, HostState, MemoryEvent, Region};
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::{EventKinds, label_text};
use crate::error::ExportError;
use crate::formats::pytorch::host::{HostEntryKind, HostEvent};
use crate::formats::pytorch::kept_blocks::{BlockSizes, NumberedBlock, may_be_too_many};
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
    pub(super) devices: Vec<BTreeMap<i64, DeviceAddresses>>,
    /// The number of the last complete listing of each process.
    pub(super) last_listings: Vec<Option<u64>>,
    /// Whether there are spans or tags, which may have names from the program.
    pub(super) has_names: bool,
    /// The sizes of blocks of processes that have an event in the selected time.
    pub(super) sizes: BlockSizes,
    /// The blocks of each process that are live at the end; empty if there are few blocks.
    pub(super) live: Vec<Vec<NumberedBlock>>,
}

/// The data about a device that is needed before its events are read.
#[derive(Debug, Default)]
pub(super) struct DeviceAddresses {
    /// The addresses that it ever used.
    pub(super) used: UsedAddresses,
    /// Whether its host records every event that `PyTorch`'s allocator has.
    pub(super) is_exact: bool,
}

/// Reads the recording once, to find the devices, the addresses of their blocks, and how many blocks there are.
pub(super) fn find(source: &Source<'_>) -> Result<SnapshotContents, ExportError> {
    let events = source.processes().iter().map(ProcessRecording::event_count).sum();
    let counts_blocks = source.options().min_block.unwrap_or(0) > 0 || may_be_too_many(events);
    let begin = source.options().part.range.as_ref().map_or(0, |range| range.start);
    let mut readers: Vec<FirstReader> =
        source.processes().iter().map(|process| FirstReader::new(process, counts_blocks)).collect();
    let devices = readers.iter().map(|_| BTreeMap::new()).collect();
    let (sizes, live, has_names) = Default::default();
    let mut found = SnapshotContents { devices, last_listings: vec![None; readers.len()], has_names, sizes, live };
    source.visit_events_from_start(&mut |timed| {
        let process = source.index_of(timed.process);
        let reader = &mut readers[process];
        let event = reader.changes.kinds.decode(&timed.event);
        found.has_names |= match event {
            Event::Begin(begin) => !begin.is_resumed,
            _ => matches!(event, Event::Tag { .. }),
        };
        reader.is_selected = u64::try_from(timed.time_ns).is_ok_and(|time| time >= begin);
        let Some(change) = reader.changes.read_decoded(&timed, &event) else { return Ok(()) };
        if let MemoryChange::Listing { event: ListingEvent::End, number } = change {
            found.last_listings[process] = Some(number);
        }
        reader.change(timed.thread, &change, (&mut found.devices[process], &mut found.sizes));
        Ok(())
    })?;
    found.live = readers.into_iter().map(FirstReader::live_blocks).collect();
    Ok(found)
}

/// Reads the events of a process for the first time.
struct FirstReader {
    changes: ChangeReader,
    /// The live segments, to find the blocks outside of them; the live blocks of the process, by their numbers.
    live: LiveDevices<u64>,
    memory: LiveChanges<u64>,
    counts_blocks: bool,
    /// The number of blocks so far.
    blocks: u64,
    /// The number of blocks before the selected time.
    blocks_before: u64,
    /// Whether the selected time has begun.
    is_selected: bool,
}

impl FirstReader {
    fn new(process: &ProcessRecording, counts_blocks: bool) -> Self {
        let (live, memory, blocks, blocks_before, is_selected) = Default::default();
        let changes = ChangeReader::of(process);
        Self { changes, live, memory, counts_blocks, blocks, blocks_before, is_selected }
    }

    fn change(
        &mut self,
        thread: u32,
        change: &MemoryChange,
        (devices, sizes): (&mut BTreeMap<i64, DeviceAddresses>, &mut BlockSizes),
    ) {
        match change {
            MemoryChange::Allocate(memory, _) => {
                self.allocate(memory, &mut devices.entry(memory.region.device()).or_default().used, sizes);
            }
            MemoryChange::Free(memory) => self.free(thread, memory, sizes),
            MemoryChange::Keep(address) if self.counts_blocks => {
                self.live.keep(thread, *address, &mut self.memory);
            }
            MemoryChange::Host { event, .. } => {
                let device = devices.entry(event.memory.region.device()).or_default();
                device.is_exact |= !event.kind.is_plain();
                match event.kind {
                    HostEntryKind::Memory(HostAction::SegmentFree | HostAction::SegmentUnmap | HostAction::Free) => {
                        self.free(thread, &event.memory, sizes);
                    }
                    HostEntryKind::Memory(_) => self.allocate(&event.memory, &mut device.used, sizes),
                    _ => {}
                }
            }
            MemoryChange::Listing { event: ListingEvent::Segment(row) | ListingEvent::Block(row), .. } => {
                devices.entry(row.device).or_default().is_exact = true;
            }
            _ => {}
        }
        self.memory.clear();
    }

    fn allocate(&mut self, memory: &MemoryEvent, used: &mut UsedAddresses, sizes: &mut BlockSizes) {
        let MemoryEvent { region, address, size, .. } = *memory;
        if region.is_range() {
            used.add_range(address, size);
            self.live.allocate(memory, 0, &mut self.memory);
        } else if self.live.range_at(Region::Segment(region.device()), address).is_none() {
            used.add_block(address, size);
        }
        if self.counts(region) {
            self.blocks += 1;
            if self.is_selected {
                sizes.add(size);
            } else {
                self.blocks_before = self.blocks;
            }
            self.live.allocate(memory, self.blocks, &mut self.memory);
        }
    }

    fn free(&mut self, thread: u32, memory: &MemoryEvent, sizes: &mut BlockSizes) {
        if memory.region.is_range() || self.counts(memory.region) {
            self.live.free(thread, memory, &mut self.memory);
        }
        if self.counts(memory.region) && self.is_selected {
            let from_before = self.memory.gone.iter().filter(|block| block.value <= self.blocks_before);
            from_before.for_each(|block| sizes.add(block.size));
        }
    }

    fn counts(&self, region: Region) -> bool {
        self.counts_blocks && is_of_process(region)
    }

    fn live_blocks(self) -> Vec<NumberedBlock> {
        let blocks = self.live.iter().filter(|range| self.counts(range.region));
        blocks.map(|block| (block.value, block.size)).collect()
    }
}

/// Returns whether a region is a block of the process's own memory, of which a snapshot may leave some out.
pub(super) fn is_of_process(region: Region) -> bool {
    region == Region::Block(EventKind::OWN_DEVICE)
}
