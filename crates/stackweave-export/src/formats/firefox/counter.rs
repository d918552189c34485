//! The memory of a process as a counter, which the format stores as differences.

use std::io::{self, Write};

use serde_json::json;
use stackweave_profile::memory::{LiveChanges, LiveDevices, LiveRange};

use crate::formats::firefox::track::write_milliseconds;
use crate::spilled_columns::{Spill, SpilledColumn};
use stackweave_recording::events::MemoryEvent;

#[derive(Debug)]
pub(super) struct MemoryCounter {
    live: LiveDevices<()>,
    last: u64,
    deltas: SpilledColumn,
    counts: SpilledColumn,
    numbers: SpilledColumn,
}

impl MemoryCounter {
    pub(super) fn new(spill: &Spill) -> Self {
        let column = || spill.column();
        Self { live: LiveDevices::default(), last: 0, deltas: column(), counts: column(), numbers: column() }
    }

    pub(super) fn is_used(&self) -> bool {
        self.counts.count > 0
    }

    /// Counts an allocation. Returns the addresses and sizes of what it replaced, with a minus, and of what it
    /// allocated.
    pub(super) fn allocate(&mut self, time: u64, memory: &MemoryEvent) -> io::Result<Vec<(u64, i64)>> {
        let mut changes = LiveChanges::default();
        self.live.allocate(memory, (), &mut changes);
        self.changed(time, &changes)
    }

    /// Counts a free, and returns its changes in the same form.
    pub(super) fn free(&mut self, time: u64, thread: u32, memory: &MemoryEvent) -> io::Result<Vec<(u64, i64)>> {
        let mut changes = LiveChanges::default();
        self.live.free(thread, memory, &mut changes);
        self.changed(time, &changes)
    }

    /// Undoes a free that failed, and returns its changes in the same form.
    pub(super) fn keep(&mut self, time: u64, thread: u32, address: u64) -> io::Result<Vec<(u64, i64)>> {
        let mut changes = LiveChanges::default();
        self.live.keep(thread, address, &mut changes);
        self.changed(time, &changes)
    }

    fn changed(&mut self, time: u64, changes: &LiveChanges<()>) -> io::Result<Vec<(u64, i64)>> {
        let size = |range: &LiveRange<()>| i64::try_from(range.size).unwrap_or(i64::MAX);
        let gone = changes.gone.iter().map(|range| (range.address, -size(range)));
        let come = changes.come.iter().map(|range| (range.address, size(range)));
        let changes: Vec<(u64, i64)> = gone.chain(come).collect();
        if !changes.is_empty() {
            self.change(time, changes.iter().fold(0, |sum: i64, (_, by)| sum.saturating_add(*by)))?;
        }
        Ok(changes)
    }

    fn change(&mut self, time: u64, by: i64) -> io::Result<()> {
        let delta = time.saturating_sub(self.last);
        self.last = self.last.max(time);
        self.deltas.push(|text| write_milliseconds(text, delta))?;
        self.counts.push(|text| text.extend(by.to_string().bytes()))?;
        self.numbers.push(|text| text.push(b'1'))
    }

    pub(super) fn write(&self, out: &mut dyn Write, pid: u32, main_thread: usize) -> io::Result<()> {
        let about = json!({
            "name": "malloc",
            "category": "Memory",
            "description": "allocated bytes",
            "pid": pid.to_string(),
            "mainThreadIndex": main_thread,
        });
        out.write_all(about.to_string().trim_end_matches('}').as_bytes())?;
        write!(out, ",\"samples\":{{\"length\":{},\"count\":", self.counts.count)?;
        self.counts.write(out)?;
        out.write_all(b",\"number\":")?;
        self.numbers.write(out)?;
        out.write_all(b",\"timeDeltas\":")?;
        self.deltas.write(out)?;
        out.write_all(b"}}")
    }
}
