//! The memory of a process as a counter, which the format keeps as changes.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::json;

use crate::formats::firefox::track::write_milliseconds;
use crate::spill::{Spill, SpilledColumn};

#[derive(Debug)]
pub(super) struct MemoryCounter {
    /// The blocks that are not freed.
    blocks: HashMap<u64, i64>,
    last: u64,
    deltas: SpilledColumn,
    counts: SpilledColumn,
    numbers: SpilledColumn,
}

impl MemoryCounter {
    pub(super) fn new(spill: &Spill) -> Self {
        let column = || spill.column();
        Self { blocks: HashMap::new(), last: 0, deltas: column(), counts: column(), numbers: column() }
    }

    pub(super) fn is_used(&self) -> bool {
        self.counts.count > 0
    }

    /// Memory is taken: its size.
    pub(super) fn allocate(&mut self, time: u64, address: u64, size: u64) -> io::Result<i64> {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let replaced = self.blocks.insert(address, size).unwrap_or(0);
        self.change(time, size.saturating_sub(replaced))?;
        Ok(size)
    }

    /// Memory is given back: its size, with a minus.
    pub(super) fn free(&mut self, time: u64, address: u64) -> io::Result<Option<i64>> {
        let Some(size) = self.blocks.remove(&address) else { return Ok(None) };
        self.change(time, -size)?;
        Ok(Some(-size))
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
