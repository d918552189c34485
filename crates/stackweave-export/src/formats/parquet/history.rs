//! A row for each allocation, with the time when it was freed.
//!
//! A row is written when the block is freed; blocks that are not freed come last. If a mapping is freed in part, that
//! part is written, and the rest becomes an allocation of its own with the same start.

use std::rc::Rc;

use crate::activity::{NamedProcess, ThreadEvent};
use crate::error::ExportError;
use crate::formats::parquet::table::{CellValue, ParquetTable};
use stackweave_core::EventKind;
use stackweave_profile::memory::{LiveChanges, LiveDevices, LiveRange};
use stackweave_recording::events::{MemoryEvent, Region};

pub(super) struct History<'a> {
    process: &'a NamedProcess<'a>,
    table: ParquetTable,
    live: LiveDevices<AllocationRow>,
    changes: LiveChanges<AllocationRow>,
    allocators: Vec<Rc<str>>,
    /// The last block that each thread freed: the call may have failed, so its row waits for the thread's next free.
    waiting: std::collections::BTreeMap<u32, PendingFree>,
}

struct PendingFree {
    time: u64,
    freed: Vec<LiveRange<AllocationRow>>,
}

/// The data of an allocation.
#[derive(Clone, Copy, Debug)]
struct AllocationRow {
    time: u64,
    thread: u32,
    allocator: usize,
    memory: MemoryEvent,
    tag: u32,
}

impl<'a> History<'a> {
    pub(super) fn new(process: &'a NamedProcess<'a>, table: ParquetTable) -> Self {
        let (live, changes, allocators, waiting) = Default::default();
        Self { process, table, live, changes, allocators, waiting }
    }

    pub(super) fn allocate(
        &mut self,
        event: &ThreadEvent<'_>,
        (memory, tag): (&MemoryEvent, u32),
        allocator: &Rc<str>,
    ) -> Result<(), ExportError> {
        self.write_last_free(event.thread)?;
        let known = self.allocators.iter().position(|known| known == allocator);
        let allocator = known.unwrap_or_else(|| {
            self.allocators.push(Rc::clone(allocator));
            self.allocators.len() - 1
        });
        let born = AllocationRow { time: event.time, thread: event.thread, allocator, memory: *memory, tag };
        self.live.allocate(memory, born, &mut self.changes);
        let freed = core::mem::take(&mut self.changes).freed;
        freed.iter().try_for_each(|range| self.row(range, Some((event.time, event.thread))))
    }

    pub(super) fn free(&mut self, event: &ThreadEvent<'_>, memory: &MemoryEvent) -> Result<(), ExportError> {
        self.write_last_free(event.thread)?;
        self.live.free(event.thread, memory, &mut self.changes);
        let freed = core::mem::take(&mut self.changes).freed;
        if !freed.is_empty() {
            self.waiting.insert(event.thread, PendingFree { time: event.time, freed });
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, event: &ThreadEvent<'_>, address: u64) {
        self.live.keep(event.thread, address, &mut self.changes);
        let kept = core::mem::take(&mut self.changes).freed;
        if let Some(pending) = self.waiting.get_mut(&event.thread) {
            pending.freed.retain(|range| kept.iter().all(|kept| kept.address != range.address));
        }
    }

    /// Writes the rows of the last free of a thread, which did not fail.
    fn write_last_free(&mut self, thread: u32) -> Result<(), ExportError> {
        let Some(PendingFree { time, freed }) = self.waiting.remove(&thread) else { return Ok(()) };
        freed.iter().try_for_each(|range| self.row(range, Some((time, thread))))
    }

    pub(super) fn finish(mut self) -> Result<u64, ExportError> {
        for thread in self.waiting.keys().copied().collect::<Vec<_>>() {
            self.write_last_free(thread)?;
        }
        let mut ranges: Vec<LiveRange<AllocationRow>> = self.live.iter().collect();
        ranges.sort_by_key(|range| (range.value.time, range.address));
        for range in ranges {
            self.row(&range, None)?;
        }
        self.table.finish()
    }

    fn row(&mut self, range: &LiveRange<AllocationRow>, freed: Option<(u64, u32)>) -> Result<(), ExportError> {
        if matches!(range.region, Region::Segment(_)) {
            return Ok(());
        }
        let AllocationRow { time, thread, allocator, memory, tag } = range.value;
        let since_start = time.saturating_sub(self.process.began);
        let is_host = range.region.device() != EventKind::OWN_DEVICE;
        let host = |word: u64| if is_host { CellValue::word(word) } else { CellValue::Null };
        self.table.row([
            CellValue::Integer(self.process.recording.timeline().wall_ns(since_start)),
            CellValue::word(since_start),
            CellValue::some(freed, |(freed, _)| CellValue::word(freed.saturating_sub(time))),
            CellValue::Integer(thread.into()),
            CellValue::some(freed, |(_, thread)| CellValue::Integer(thread.into())),
            CellValue::text(&self.allocators[allocator]),
            CellValue::word(range.address),
            CellValue::word(range.size),
            CellValue::Integer(range.region.device()),
            host(memory.stream),
            host(memory.pool),
            CellValue::number(tag),
            CellValue::number(memory.stack),
        ])
    }
}
