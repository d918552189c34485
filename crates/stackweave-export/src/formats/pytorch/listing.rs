//! The listings of all segments and blocks of a host allocator. The last complete one replaces the state according to
//! earlier events.

use core::mem;

use crate::formats::pytorch::host::HostEvent;
use crate::formats::pytorch::ranges::InferredSegments;
use crate::formats::pytorch::segments::{BlockState, SnapshotBlock, SnapshotSegment, filled};
use crate::formats::pytorch::trace::{AllocationInfo, SnapshotDevice};
use stackweave_profile::memory::LiveRange;
use stackweave_recording::events::{HostStateRow, MemoryEvent, Region};

/// An event of a listing.
#[derive(Clone, Copy, Debug)]
pub(super) enum ListingEvent {
    Begin,
    Segment(HostStateRow),
    Block(HostStateRow),
    End,
}

/// A listing that is being read, for one device.
#[derive(Debug, Default)]
pub(super) struct OpenListing {
    segments: Vec<SnapshotSegment>,
    /// Events since its start, with the tags of their threads. They may not be included in it.
    later: Vec<(HostEvent, u32)>,
}

impl OpenListing {
    pub(super) fn add_later(&mut self, event: &HostEvent, tag: u32) {
        if event.region().is_some() {
            self.later.push((*event, tag));
        }
    }

    fn segment(&mut self, row: &HostStateRow) {
        let HostStateRow { address, size, stream, pool, stack, .. } = *row;
        let (is_large, is_expandable) = (row.is_large(), row.grows());
        let info = AllocationInfo { stack, stream, pool, is_large, is_expandable, ..AllocationInfo::default() };
        self.segments.push(SnapshotSegment { address, size, info, blocks: Vec::new() });
    }

    fn block(&mut self, row: &HostStateRow) {
        let Some(segment) = self.segments.last_mut() else { return };
        let HostStateRow { address, size, requested, stream, pool, stack, .. } = *row;
        let state = match (row.is_allocated(), row.is_active()) {
            (true, _) => BlockState::Allocated,
            (false, true) => BlockState::Pending,
            (false, false) => BlockState::Free,
        };
        let info = AllocationInfo { stack, stream, pool, requested, ..AllocationInfo::default() };
        segment.blocks.push(SnapshotBlock { address, size, state, info });
    }
}

impl SnapshotDevice {
    /// Adds an event of the listing that is used.
    pub(super) fn listing_event(&mut self, event: &ListingEvent) {
        match event {
            ListingEvent::Begin => self.listing = Some(OpenListing::default()),
            ListingEvent::Segment(row) | ListingEvent::Block(row) if row.device != self.number => {}
            ListingEvent::Segment(row) => self.listing.iter_mut().for_each(|listing| listing.segment(row)),
            ListingEvent::Block(row) => self.listing.iter_mut().for_each(|listing| listing.block(row)),
            ListingEvent::End => self.use_listing(),
        }
    }

    /// Replaces the live memory by that of the listing, and applies the later events to it.
    fn use_listing(&mut self) {
        // A listing without segments may be of other devices only: then the events of this one count.
        let Some(mut listing) = self.listing.take().filter(|listing| !listing.segments.is_empty()) else { return };
        listing.segments.sort_by_key(|segment| segment.address);
        let known = mem::take(&mut self.live);
        let pending = mem::take(&mut self.pending);
        self.inferred = InferredSegments::default();
        for segment in &mut listing.segments {
            // A listing may have no stack for the segment, but events have.
            let before = known.range_at(Region::Segment(self.number), segment.address);
            if let Some(range) = before.filter(|_| segment.info.stack == 0) {
                segment.info.stack = range.value.stack;
            }
            let SnapshotSegment { address, size, info, .. } = *segment;
            segment.blocks.sort_by_key(|block| block.address);
            segment.blocks = filled(&segment.blocks, address, address.saturating_add(size));
            self.put(Region::Segment(self.number), (address, size), info);
            for block in segment.blocks.iter_mut().filter(|block| block.state != BlockState::Free) {
                // It has no tags, and no stack of a block that was freed.
                let before =
                    known.block_at(self.number, block.address).or_else(|| pending.get(&block.address).copied());
                if let Some(range) = before {
                    block.info.tag = range.value.tag;
                    if block.info.stack == 0 {
                        block.info.stack = range.value.stack;
                    }
                }
                let (region, bounds) = (Region::Block(self.number), (block.address, block.size));
                match block.state {
                    BlockState::Allocated => self.put(region, bounds, block.info),
                    BlockState::Pending => {
                        let range = LiveRange::new(region, block.address, block.size, block.info);
                        self.pending.insert(block.address, range);
                    }
                    BlockState::Free => {}
                }
            }
        }
        self.listed_segments = Some(listing.segments);
        for (event, tag) in listing.later {
            self.apply(&event, tag);
        }
    }

    fn put(&mut self, region: Region, (address, size): (u64, u64), info: AllocationInfo) {
        self.live.allocate(&MemoryEvent::new(region, address, size), info, &mut self.changes);
        self.changes.clear();
    }
}
