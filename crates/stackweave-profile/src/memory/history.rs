//! The history of allocations: every block with its lifetime.

use std::ops::ControlFlow;
use std::sync::Arc;

use stackweave_recording::events::{Decoder, Event, MemoryEvent, Region};
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use super::labels::LabelTexts;
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

/// All blocks that a process allocated, in the order of allocation, as columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct AllocationHistory {
    /// See [`HistoryRow::time_ns`].
    pub time_ns: Vec<u64>,
    /// See [`HistoryRow::freed_ns`]; [`AllocationHistory::NOT_FREED`] if it was not freed.
    pub freed_ns: Vec<u64>,
    /// See [`HistoryRow::device`].
    pub device: Vec<i64>,
    /// See [`HistoryRow::address`].
    pub address: Vec<u64>,
    /// See [`HistoryRow::size`].
    pub size: Vec<u64>,
    /// See [`HistoryRow::stack`].
    pub stack: Vec<u32>,
    /// See [`HistoryRow::thread`].
    pub thread: Vec<u32>,
    /// See [`HistoryRow::allocator`].
    pub allocator: Vec<u32>,
    /// See [`HistoryRow::tag`].
    pub tag: Vec<u32>,
    /// The names of allocators; 0 is none.
    pub allocators: Vec<Arc<str>>,
    /// The names of tags; 0 is none.
    pub tags: Vec<Arc<str>>,
    /// The parts that could not be read.
    pub missing: Missing,
}

impl AllocationHistory {
    /// The time of blocks that were not freed.
    pub const NOT_FREED: u64 = u64::MAX;

    /// Returns the rows.
    pub fn rows(&self) -> impl Iterator<Item = HistoryRow> {
        (0..self.time_ns.len()).map(|row| HistoryRow {
            time_ns: self.time_ns[row],
            freed_ns: Some(self.freed_ns[row]).filter(|time| *time != Self::NOT_FREED),
            device: self.device[row],
            address: self.address[row],
            size: self.size[row],
            stack: self.stack[row],
            thread: self.thread[row],
            allocator: self.allocator[row],
            tag: self.tag[row],
        })
    }

    /// Adds a block that is not freed.
    fn push(&mut self, time_ns: u64, memory: &MemoryEvent, thread: u32, [allocator, tag]: [u32; 2]) {
        self.time_ns.push(time_ns);
        self.freed_ns.push(Self::NOT_FREED);
        self.device.push(memory.region.device());
        self.address.push(memory.address);
        self.size.push(memory.size);
        self.stack.push(memory.stack);
        self.thread.push(thread);
        self.allocator.push(allocator);
        self.tag.push(tag);
    }
}

/// Reads the blocks that a process allocated in the selected time, on the selected threads and under the selected tags.
/// A block that was freed after that time counts as live.
pub fn read_history(
    process: &ProcessRecording,
    query: &MemoryQuery,
    progress: &mut dyn FnMut(u64),
) -> Result<AllocationHistory, ReadError> {
    let mut reader = HistoryReader::new(process, query);
    let missing = visit_memory(process, query, progress, &mut |thread, time_ns, event| match event {
        Event::Allocate(memory) => reader.allocate(thread, time_ns, memory),
        Event::Free(memory) => reader.free(thread, time_ns, memory),
        Event::Keep { address } => reader.keep(thread, *address),
        Event::Tag { frame } => reader.selected.tag(thread, *frame),
        _ => {}
    })?;
    let (allocators, tags) = (reader.allocators.into_texts(), reader.selected.tag_names.into_texts());
    Ok(AllocationHistory { allocators, tags, missing, ..reader.history })
}

/// Reads the stacks of the same blocks, and calls `visit` with the number of each, perhaps several times.
pub fn read_history_stacks(
    process: &ProcessRecording,
    query: &MemoryQuery,
    visit: &mut dyn FnMut(u32),
) -> Result<Missing, ReadError> {
    let mut selected = SelectedRows::new(process, query);
    visit_memory(process, query, &mut |_| {}, &mut |thread, time_ns, event| match event {
        Event::Allocate(memory) if selected.tag_of(thread, time_ns, memory.region).is_some() => visit(memory.stack),
        Event::Tag { frame } => selected.tag(thread, *frame),
        _ => {}
    })
}

/// Visits the events up to the end of the selected time, if the process has recorded memory.
fn visit_memory(
    process: &ProcessRecording,
    query: &MemoryQuery,
    progress: &mut dyn FnMut(u64),
    visit: &mut dyn FnMut(u32, u64, &Event<'_>),
) -> Result<Missing, ReadError> {
    let decoder = Decoder::of(process.dictionary());
    if !decoder.has_memory() {
        return Ok(Missing::default());
    }
    let until = query.range.as_ref().map(|range| 0..range.end);
    process.visit_in_time_order(until, progress, &mut |timed| {
        let time_ns = u64::try_from(timed.time_ns).unwrap_or(0);
        visit(timed.thread, time_ns, &decoder.decode(&timed.event));
        ControlFlow::Continue(())
    })
}

/// The selection of blocks.
struct SelectedRows<'a> {
    process: &'a ProcessRecording,
    query: &'a MemoryQuery,
    start: u64,
    threads: WordMap<u32, bool>,
    tag_names: LabelTexts,
    /// The tag of each thread, and whether it is selected.
    tags: WordMap<u32, (u32, bool)>,
    /// Whether blocks without a tag are selected.
    takes_untagged: bool,
}

impl<'a> SelectedRows<'a> {
    fn new(process: &'a ProcessRecording, query: &'a MemoryQuery) -> Self {
        let (threads, tag_names, tags) = Default::default();
        let start = query.range.as_ref().map_or(0, |range| range.start);
        Self { process, query, start, threads, tag_names, tags, takes_untagged: query.takes_tag("") }
    }

    fn tag(&mut self, thread: u32, frame: u32) {
        let tag = self.tag_names.of_frame(self.process.dictionary(), frame);
        let is_selected = self.query.takes_tag(self.tag_names.text(tag));
        self.tags.insert(thread, (tag, is_selected));
    }

    /// Returns the tag of a block that a thread allocates now; `None` if the block is not selected, or is a segment.
    fn tag_of(&mut self, thread: u32, time_ns: u64, region: Region) -> Option<u32> {
        let (tag, is_selected) = self.tags.get(&thread).copied().unwrap_or((0, self.takes_untagged));
        let (process, query) = (self.process, self.query);
        let of_thread = || query.takes_thread(process.dictionary().thread(thread));
        (is_selected
            && !matches!(region, Region::Segment(_))
            && time_ns >= self.start
            && query.takes_device(region.device())
            && *self.threads.entry(thread).or_insert_with(of_thread))
        .then_some(tag)
    }
}

struct HistoryReader<'a> {
    history: AllocationHistory,
    selected: SelectedRows<'a>,
    allocators: LabelTexts,
    kinds: WordMap<u32, u32>,
    /// The row of each block and range, or [`NO_ROW`].
    live: LiveDevices<u32>,
    changes: LiveChanges<u32>,
    /// The remaining bytes of each mapping, by row.
    left: WordMap<u32, u64>,
}

/// The row of memory that is not selected.
const NO_ROW: u32 = u32::MAX;

impl<'a> HistoryReader<'a> {
    fn new(process: &'a ProcessRecording, query: &'a MemoryQuery) -> Self {
        let (history, allocators, kinds, live, changes, left) = Default::default();
        Self { history, selected: SelectedRows::new(process, query), allocators, kinds, live, changes, left }
    }

    fn allocate(&mut self, thread: u32, time_ns: u64, memory: &MemoryEvent) {
        if matches!(memory.region, Region::Segment(_)) {
            return;
        }
        let row = self.put(thread, time_ns, memory).unwrap_or(NO_ROW);
        if memory.region.is_range() && row != NO_ROW {
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
            if left.is_none_or(|left| left == 0)
                && let Some(freed) = self.history.freed_ns.get_mut(range.value as usize)
            {
                *freed = time_ns;
            }
        }
        self.changes.clear();
    }

    fn keep(&mut self, thread: u32, address: u64) {
        self.live.keep(thread, address, &mut self.changes);
        for range in &self.changes.freed {
            if let Some(freed) = self.history.freed_ns.get_mut(range.value as usize) {
                *freed = AllocationHistory::NOT_FREED;
            }
            if let Some(left) = self.left.get_mut(&range.value) {
                *left = left.saturating_add(range.size);
            }
        }
        self.changes.clear();
    }

    /// Adds the row of a block if it is selected.
    fn put(&mut self, thread: u32, time_ns: u64, memory: &MemoryEvent) -> Option<u32> {
        let tag = self.selected.tag_of(thread, time_ns, memory.region)?;
        let dictionary = self.selected.process.dictionary();
        let name = || dictionary.kind(memory.kind).map_or("", |kind| &*kind.name);
        let allocators = &mut self.allocators;
        let allocator = *self.kinds.entry(memory.kind.into()).or_insert_with(|| allocators.number(name()));
        self.history.push(time_ns, memory, thread, [allocator, tag]);
        u32::try_from(self.history.time_ns.len() - 1).ok()
    }
}
