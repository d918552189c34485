//! The history of allocations: every block with its lifetime.

use std::ops::ControlFlow;
use std::sync::Arc;

use stackweave_recording::events::{Decoder, Event, MemoryEvent, Region};
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use super::labels::Labels;
use super::live_devices::{LiveChanges, LiveDevices};
use super::query::MemoryQuery;
use crate::word_hash::WordMap;

/// A block, or a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// The time of the allocation, in nanoseconds since the process began to record.
    pub time_ns: u64,
    /// The time at which it, or the last part of it, was freed.
    pub freed_ns: Option<u64>,
    /// The device.
    pub device: i64,
    /// The start address.
    pub address: u64,
    /// The requested bytes.
    pub size: u64,
    /// The number of its stack in the recording; 0 if none was recorded.
    pub stack: u32,
    /// The number of its thread in the recording.
    pub thread: u32,
    /// The index in [`AllocationHistory::allocators`].
    pub allocator: u32,
    /// The index in [`AllocationHistory::tags`]; 0 without a tag.
    pub tag: u32,
}

/// All blocks that a process allocated.
#[derive(Clone, Debug)]
pub struct AllocationHistory {
    /// In the order of allocation.
    pub rows: Vec<HistoryRow>,
    /// The names of allocators; 0 is none.
    pub allocators: Vec<Arc<str>>,
    /// The names of tags; 0 is none.
    pub tags: Vec<Arc<str>>,
    /// The data that could not be read.
    pub missing: Missing,
}

/// Reads the blocks that a process allocated in the selected time, on the selected threads and under the selected tags.
/// A block that was freed after that time counts as live.
pub fn read_history(
    process: &ProcessRecording,
    query: &MemoryQuery,
    progress: &mut dyn FnMut(u64),
) -> Result<AllocationHistory, ReadError> {
    let decoder = Decoder::of(process.dictionary());
    let mut reader = HistoryReader::default();
    let mut missing = Missing::default();
    if decoder.has_memory() {
        let until = query.range.as_ref().map(|range| 0..range.end);
        missing = process.visit_in_time_order(until, progress, &mut |timed| {
            let time_ns = u64::try_from(timed.time_ns).unwrap_or(0);
            reader.event(process, timed.thread, time_ns, &decoder.decode(&timed.event));
            ControlFlow::Continue(())
        })?;
    }
    let (allocators, tags) = (reader.allocators.into_texts(), reader.tag_names.into_texts());
    let start = query.range.as_ref().map_or(0, |range| range.start);
    let mut rows = reader.rows;
    let mut threads: WordMap<u32, bool> = WordMap::default();
    rows.retain(|row| {
        let thread = || query.takes_thread(process.dictionary().thread(row.thread));
        row.time_ns >= start
            && query.takes_device(row.device)
            && *threads.entry(row.thread).or_insert_with(thread)
            && query.takes_tag(tags.get(row.tag as usize).map_or("", |tag| tag))
    });
    Ok(AllocationHistory { rows, allocators, tags, missing })
}

#[derive(Default)]
struct HistoryReader {
    rows: Vec<HistoryRow>,
    allocators: Labels,
    tag_names: Labels,
    kinds: WordMap<u32, u32>,
    tags: WordMap<u32, u32>,
    /// The row of each block and range.
    live: LiveDevices<usize>,
    changes: LiveChanges<usize>,
    /// The remaining bytes of each mapping, by row.
    left: WordMap<usize, u64>,
}

impl HistoryReader {
    fn event(&mut self, process: &ProcessRecording, thread: u32, time_ns: u64, event: &Event<'_>) {
        match event {
            Event::Allocate(memory) => self.allocate(process, thread, time_ns, memory),
            Event::Free(memory) => self.free(thread, time_ns, memory),
            Event::Keep { address } => self.keep(thread, *address),
            Event::Tag { frame } => {
                let tag = self.tag_names.of_frame(process.dictionary(), *frame);
                self.tags.insert(thread, tag);
            }
            _ => {}
        }
    }

    fn allocate(&mut self, process: &ProcessRecording, thread: u32, time_ns: u64, memory: &MemoryEvent) {
        if matches!(memory.region, Region::Segment(_)) {
            return;
        }
        let row = self.put(process, thread, time_ns, memory);
        if memory.region.is_range() {
            self.left.insert(row, memory.size);
        }
        self.live.allocate(memory, row, &mut self.changes);
        self.apply_frees(time_ns);
    }

    fn free(&mut self, thread: u32, time_ns: u64, memory: &MemoryEvent) {
        if !matches!(memory.region, Region::Segment(_)) {
            self.live.free(thread, memory, &mut self.changes);
            self.apply_frees(time_ns);
        }
    }

    /// Sets the time of rows that are freed. A mapping is freed with its last part.
    fn apply_frees(&mut self, time_ns: u64) {
        for range in &self.changes.freed {
            let left = self.left.get_mut(&range.value).map(|left| {
                *left = left.saturating_sub(range.size);
                *left
            });
            if left.is_none_or(|left| left == 0) {
                self.rows[range.value].freed_ns = Some(time_ns);
            }
        }
        self.changes.clear();
    }

    fn keep(&mut self, thread: u32, address: u64) {
        self.live.keep(thread, address, &mut self.changes);
        for range in &self.changes.freed {
            self.rows[range.value].freed_ns = None;
            if let Some(left) = self.left.get_mut(&range.value) {
                *left = left.saturating_add(range.size);
            }
        }
        self.changes.clear();
    }

    fn put(&mut self, process: &ProcessRecording, thread: u32, time_ns: u64, memory: &MemoryEvent) -> usize {
        let name = || process.dictionary().kind(memory.kind).map_or("", |kind| &*kind.name);
        let allocators = &mut self.allocators;
        let allocator = *self.kinds.entry(memory.kind.into()).or_insert_with(|| allocators.number(name()));
        let tag = self.tags.get(&thread).copied().unwrap_or(0);
        let MemoryEvent { region, address, size, stack, .. } = *memory;
        let device = region.device();
        self.rows.push(HistoryRow { time_ns, freed_ns: None, device, address, size, stack, thread, allocator, tag });
        self.rows.len() - 1
    }
}
