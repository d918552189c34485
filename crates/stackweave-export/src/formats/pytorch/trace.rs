//! The events of one device.

use std::collections::HashMap;
use std::io;

use crate::formats::pytorch::host::{HostEntryKind, HostEvent};
use crate::formats::pytorch::kept_blocks::KeptBlocks;
use crate::formats::pytorch::listing::OpenListing;
use crate::formats::pytorch::pickle::{MemoId, Pickle};
use crate::formats::pytorch::ranges::InferredSegments;
use crate::formats::pytorch::read::{DeviceAddresses, MemoryChange, is_of_process};
use crate::formats::pytorch::segments::{SnapshotSegment, is_large};
use crate::formats::pytorch::stacks::StackWriter;
use stackweave_profile::memory::{LiveChanges, LiveDevices, LiveRange};
use stackweave_recording::events::{self, HostAction, MemoryEvent, Region};

/// The allocation of a live block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AllocationInfo {
    pub(super) stack: u32,
    pub(super) tag: u32,
    pub(super) stream: u64,
    pub(super) pool: u64,
    /// The requested bytes: the allocator may have allocated more.
    pub(super) requested: u64,
    /// Whether it is a segment for large blocks.
    pub(super) is_large: bool,
    /// Whether it is a segment that may grow.
    pub(super) is_expandable: bool,
}

/// The memory of one device of a process.
#[derive(Debug)]
pub(super) struct SnapshotDevice {
    pub(super) number: i64,
    /// The index of its process.
    pub(super) process: usize,
    pub(super) live: LiveDevices<AllocationInfo>,
    /// The segments for blocks outside recorded segments.
    pub(super) inferred: InferredSegments,
    /// Memory that was freed but can't be allocated again yet, by address.
    pub(super) pending: HashMap<u64, LiveRange<AllocationInfo>>,
    /// The listing that is being read.
    pub(super) listing: Option<OpenListing>,
    /// The segments of the last listing, if nothing has changed since.
    pub(super) listed_segments: Option<Vec<SnapshotSegment>>,
    /// The number of the listing that is used: the last one.
    last_listing: Option<u64>,
    /// Whether its host records every event that `PyTorch`'s allocator has.
    is_exact: bool,
    /// The blocks that the snapshot contains, if it is the memory of a process.
    pub(super) kept: KeptBlocks,
    pub(super) changes: LiveChanges<AllocationInfo>,
}

/// An entry of the trace.
#[derive(Debug)]
pub(super) struct TraceEntry<'e> {
    pub(super) action: &'static str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) info: &'e AllocationInfo,
    /// The stack, if it is not that of the allocation.
    pub(super) stack: u32,
}

/// Writes entries.
pub(super) struct TraceWriter<'t, 'o> {
    pub(super) pickle: &'t mut Pickle<'o>,
    pub(super) stacks: &'t mut StackWriter,
    pub(super) pools: &'t mut HashMap<u64, MemoId>,
    /// Microseconds since 1970; `None` outside the selected time.
    pub(super) time_us: Option<i64>,
}

impl SnapshotDevice {
    /// Creates a device. `last_listing` is the number of the listing that is used.
    pub(super) fn new(process: usize, number: i64, memory: DeviceAddresses, last_listing: Option<u64>) -> Self {
        let (live, pending, listing, listed_segments, kept, changes) = Default::default();
        let (inferred, is_exact) = (memory.used.into_segments(), memory.is_exact && number >= 0);
        Self {
            number,
            process,
            live,
            inferred,
            pending,
            listing,
            listed_segments,
            last_listing,
            is_exact,
            kept,
            changes,
        }
    }

    /// Applies a change of memory if it is about this device, and writes its entries.
    pub(super) fn change(
        &mut self,
        thread: u32,
        change: &MemoryChange,
        trace: &mut TraceWriter<'_, '_>,
    ) -> io::Result<()> {
        let mut stack = 0;
        match change {
            MemoryChange::Host { event, tag } if event.memory.region.device() == self.number => {
                if self.is_exact || !event.kind.is_plain() {
                    return self.host_event(event, *tag, trace);
                }
                stack = self.plain_host_event(thread, event, *tag);
            }
            MemoryChange::Listing { number, event } if Some(*number) == self.last_listing => self.listing_event(event),
            MemoryChange::Allocate(memory, tag) if memory.region.device() == self.number => {
                if is_of_process(memory.region) && !self.kept.takes(memory.size) {
                    // A block whose free was not recorded may have been at its address.
                    self.free_plain(thread, memory);
                } else {
                    self.allocate(memory, *tag);
                }
            }
            MemoryChange::Free(memory) if memory.region.device() == self.number => {
                stack = memory.stack;
                self.free_plain(thread, memory);
            }
            MemoryChange::Keep(address) => self.live.keep(thread, *address, &mut self.changes),
            MemoryChange::OutOfMemory { size, stack, tag } if self.number < 0 => {
                let info = AllocationInfo { stack: *stack, tag: *tag, ..AllocationInfo::default() };
                trace.entry(&TraceEntry { action: "oom", address: 0, size: *size, info: &info, stack: 0 })?;
            }
            _ => {}
        }
        self.write_changes(stack, trace)
    }

    /// Applies an event of a host whose events may be incomplete. Returns the stack of a free.
    fn plain_host_event(&mut self, thread: u32, event: &HostEvent, tag: u32) -> u32 {
        match event.kind {
            HostEntryKind::Memory(HostAction::Allocate | HostAction::Segment) => self.allocate(&event.memory, tag),
            HostEntryKind::Memory(_) => {
                self.free_plain(thread, &event.memory);
                return event.memory.stack;
            }
            _ => {}
        }
        0
    }

    fn allocate(&mut self, memory: &MemoryEvent, tag: u32) {
        let MemoryEvent { size, stack, stream, pool, .. } = *memory;
        let (requested, is_large, is_expandable) = (size, is_large(size), false);
        let value = AllocationInfo { stack, tag, stream, pool, requested, is_large, is_expandable };
        self.live.allocate(memory, value, &mut self.changes);
    }

    fn free_plain(&mut self, thread: u32, memory: &MemoryEvent) {
        self.live.free(thread, memory, &mut self.changes);
    }

    /// Writes entries for the changes: frees first.
    fn write_changes(&mut self, stack: u32, trace: &mut TraceWriter<'_, '_>) -> io::Result<()> {
        let LiveChanges { gone, come, .. } = core::mem::take(&mut self.changes);
        for range in gone {
            let entry =
                |action| TraceEntry { action, address: range.address, size: range.size, info: &range.value, stack };
            if !matches!(range.region, Region::Segment(_)) {
                trace.entry(&entry("free_requested"))?;
                trace.entry(&entry("free_completed"))?;
            }
            if self.is_segment(&range) {
                trace.entry(&entry("segment_free"))?;
            }
        }
        for range in come {
            let entry =
                |action| TraceEntry { action, address: range.address, size: range.size, info: &range.value, stack: 0 };
            if self.is_segment(&range) {
                trace.entry(&entry("segment_alloc"))?;
            }
            if !matches!(range.region, Region::Segment(_)) {
                trace.entry(&entry("alloc"))?;
            }
        }
        Ok(())
    }

    /// Returns whether a range is a segment of its own.
    pub(super) fn is_segment(&self, range: &LiveRange<AllocationInfo>) -> bool {
        range.region.is_range() && !self.inferred.contains(range.address)
    }
}

impl TraceWriter<'_, '_> {
    pub(super) fn entry(&mut self, entry: &TraceEntry<'_>) -> io::Result<()> {
        let Some(time_us) = self.time_us else { return Ok(()) };
        let TraceEntry { action, address, size, info, stack } = *entry;
        self.pickle.item()?;
        let pickle = &mut *self.pickle;
        pickle.begin_dictionary();
        pickle.text("action");
        pickle.text(action);
        pickle.text(if action == "oom" { "device_free" } else { "addr" });
        pickle.unsigned(address);
        pickle.text("size");
        pickle.unsigned(size);
        pickle.text("stream");
        pickle.unsigned(info.stream);
        pickle.text("time_us");
        pickle.integer(time_us);
        pickle.text("compile_context");
        pickle.text("N/A");
        pickle.text("user_metadata");
        pickle.text(if info.tag == 0 { "" } else { self.stacks.name(info.tag) });
        pickle.text("pool_id");
        write_pool(info.pool, self.pools, pickle);
        let stack = if stack == 0 { info.stack } else { stack };
        if stack != 0 {
            pickle.text("frames");
            self.stacks.write(stack, pickle)?;
        }
        pickle.end_dictionary();
        Ok(())
    }
}

pub(super) fn write_pool(pool: u64, known: &mut HashMap<u64, MemoId>, pickle: &mut Pickle<'_>) {
    if let Some(known) = known.get(&pool) {
        pickle.refer(*known);
    } else {
        // A pool of `PyTorch` has two numbers, of which one is 0.
        let graph = pool & !events::POOL_OF_GRAPH;
        pickle.pair(if graph == pool { [0, pool] } else { [graph, 0] });
        known.insert(pool, pickle.memoize());
    }
}
