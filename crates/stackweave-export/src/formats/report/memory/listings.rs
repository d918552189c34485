//! The listings of host allocators: each segment with its blocks.

use std::collections::{BTreeMap, HashMap};

use stackweave_recording::events::{Event, HostAction, HostState, HostStateRow, Region};

/// The last listing of each device, by the index of the process.
#[derive(Debug, Default)]
pub(super) struct Listings {
    last: BTreeMap<(usize, i64), Listing>,
}

/// The segments of an allocator on one device at a time.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The time in nanoseconds since the process began to record.
    time_ns: u64,
    pub(super) segments: Vec<ListedSegment>,
}

#[derive(Debug)]
pub(super) struct ListedSegment {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) stream: u64,
    pub(super) pool: u64,
    pub(super) flags: u64,
    /// Sorted by address.
    pub(super) blocks: Vec<ListedBlock>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ListedBlock {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) requested: u64,
    pub(super) flags: u64,
    pub(super) stack: u32,
}

impl Listings {
    /// Returns the listing of this time, if it has rows.
    pub(super) fn of(&self, process: usize, device: i64, time_ns: u64) -> Option<&Listing> {
        self.last.get(&(process, device)).filter(|listing| listing.time_ns == time_ns)
    }
}

/// Reads the listings of one process.
#[derive(Debug)]
pub(super) struct ListingReader {
    process: usize,
    /// The listings that have begun, by thread.
    open: HashMap<u32, (u64, BTreeMap<i64, Listing>)>,
    /// The stacks of all blocks that are not free, by device and address: a listing has none for pending frees.
    stacks: HashMap<(i64, u64), u32>,
}

impl ListingReader {
    pub(super) fn new(process: usize) -> Self {
        Self { process, open: HashMap::new(), stacks: HashMap::new() }
    }

    /// Adds an event of the process.
    pub(super) fn add(&mut self, (thread, time_ns): (u32, u64), event: &Event<'_>, listings: &mut Listings) {
        match event {
            Event::Allocate(memory) => {
                if let (Some(_), Region::Block(device)) = (memory.host, memory.region) {
                    self.stacks.insert((device, memory.address), memory.stack);
                }
            }
            Event::Free(memory) | Event::Complete(memory) => {
                if let (Some(HostAction::Free | HostAction::FreeCompleted), Region::Block(device)) =
                    (memory.host, memory.region)
                {
                    self.stacks.remove(&(device, memory.address));
                }
            }
            Event::State(HostState::Begin { .. }) => {
                self.open.insert(thread, (time_ns, BTreeMap::new()));
            }
            Event::State(HostState::End) => {
                let (_, ended) = self.open.remove(&thread).unwrap_or_default();
                listings.last.extend(ended.into_iter().map(|(device, listing)| ((self.process, device), listing)));
            }
            Event::State(HostState::Segment(row)) => {
                if let Some(listing) = self.listing(thread, row.device) {
                    let HostStateRow { address, size, stream, pool, flags, .. } = *row;
                    listing.segments.push(ListedSegment { address, size, stream, pool, flags, blocks: Vec::new() });
                }
            }
            Event::State(HostState::Block(row)) => self.block(thread, row),
            _ => {}
        }
    }

    /// Returns the listing of a device that a thread has begun.
    fn listing(&mut self, thread: u32, device: i64) -> Option<&mut Listing> {
        let (began, devices) = self.open.get_mut(&thread)?;
        let listing = devices.entry(device).or_default();
        listing.time_ns = *began;
        Some(listing)
    }

    fn block(&mut self, thread: u32, row: &HostStateRow) {
        let HostStateRow { device, address, size, requested, flags, .. } = *row;
        let known = self.stacks.get(&(device, address)).copied().unwrap_or(0);
        let is_free = !row.is_allocated() && !row.is_active();
        let stack = if row.stack != 0 || is_free { row.stack } else { known };
        if let Some(segment) = self.listing(thread, device).and_then(|listing| listing.segments.last_mut()) {
            segment.blocks.push(ListedBlock { address, size, requested, flags, stack });
        }
    }
}
