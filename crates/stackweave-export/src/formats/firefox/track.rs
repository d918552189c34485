//! One thread of the profile: its samples, markers and allocations as columns.

use std::io::{self, Write};

use serde_json::Value;

use crate::error::ExportError;
use crate::formats::firefox::libs::Libs;
use crate::formats::firefox::tables::ThreadTables;
use crate::spilled_columns::{Spill, SpilledColumn};

/// The meaning of the samples' weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Weights {
    /// The time until the next sample.
    Time,
    /// The weight from the sampler.
    Samples,
}

pub(super) struct ThreadColumns {
    pub(super) tables: ThreadTables,
    weights: Weights,
    tid: u32,
    /// The time of the last sample.
    last: u64,
    sample_stacks: SpilledColumn,
    sample_deltas: SpilledColumn,
    sample_weights: SpilledColumn,
    marker_categories: SpilledColumn,
    marker_data: SpilledColumn,
    marker_ends: SpilledColumn,
    marker_names: SpilledColumn,
    marker_phases: SpilledColumn,
    marker_starts: SpilledColumn,
    allocation_times: SpilledColumn,
    allocation_weights: SpilledColumn,
    allocation_stacks: SpilledColumn,
    allocation_addresses: SpilledColumn,
    allocation_threads: SpilledColumn,
}

/// A marker: an instant, or an interval if it has an end.
#[derive(Debug)]
pub(super) struct Marker {
    pub(super) name: usize,
    pub(super) category: usize,
    pub(super) start: u64,
    pub(super) end: Option<u64>,
    pub(super) data: Value,
}

impl ThreadColumns {
    pub(super) fn new(weights: Weights, tid: u32, spill: &Spill) -> Self {
        let column = || spill.column();
        Self {
            tables: ThreadTables::default(),
            weights,
            tid,
            last: 0,
            sample_stacks: column(),
            sample_deltas: column(),
            sample_weights: column(),
            marker_categories: column(),
            marker_data: column(),
            marker_ends: column(),
            marker_names: column(),
            marker_phases: column(),
            marker_starts: column(),
            allocation_times: column(),
            allocation_weights: column(),
            allocation_stacks: column(),
            allocation_addresses: column(),
            allocation_threads: column(),
        }
    }

    pub(super) fn samples(&self) -> u64 {
        self.sample_stacks.count
    }

    /// Adds a sample. Its weight is in nanoseconds if weights are times.
    pub(super) fn sample(&mut self, time: u64, stack: Option<usize>, weight: i64) -> io::Result<()> {
        let delta = time.saturating_sub(self.last);
        self.last = self.last.max(time);
        self.sample_stacks.push(|text| write_option(text, stack))?;
        self.sample_deltas.push(|text| write_milliseconds(text, delta))?;
        match self.weights {
            Weights::Time => self.sample_weights.push(|text| write_milliseconds(text, weight.unsigned_abs())),
            Weights::Samples => self.sample_weights.push(|text| text.extend(weight.to_string().bytes())),
        }
    }

    pub(super) fn marker(&mut self, marker: &Marker) -> io::Result<()> {
        let phase: &[u8] = if marker.end.is_some() { b"1" } else { b"0" };
        self.marker_names.push(|text| text.extend(marker.name.to_string().bytes()))?;
        self.marker_categories.push(|text| text.extend(marker.category.to_string().bytes()))?;
        self.marker_starts.push(|text| write_milliseconds(text, marker.start))?;
        self.marker_ends.push(|text| match marker.end {
            Some(end) => write_milliseconds(text, end),
            None => text.extend(b"null"),
        })?;
        self.marker_phases.push(|text| text.extend(phase))?;
        self.marker_data.push(|text| text.extend(marker.data.to_string().bytes()))
    }

    /// Adds an allocation, or a free with a negative size.
    pub(super) fn allocation(
        &mut self,
        time: u64,
        stack: Option<usize>,
        (address, size): (u64, i64),
    ) -> io::Result<()> {
        self.allocation_times.push(|text| write_milliseconds(text, time))?;
        self.allocation_weights.push(|text| text.extend(size.to_string().bytes()))?;
        self.allocation_stacks.push(|text| write_option(text, stack))?;
        self.allocation_addresses.push(|text| text.extend(address.to_string().bytes()))?;
        self.allocation_threads.push(|text| text.extend(self.tid.to_string().bytes()))
    }

    /// Writes the members of the thread's object with these columns.
    pub(super) fn write(&mut self, out: &mut dyn Write, libs: &Libs) -> Result<(), ExportError> {
        self.tables.write(out, libs)?;
        let weight_type = match self.weights {
            Weights::Time => "tracing-ms",
            Weights::Samples => "samples",
        };
        write!(out, "\"samples\":{{\"length\":{},\"weightType\":\"{weight_type}\"", self.samples())?;
        let columns =
            [("stack", &self.sample_stacks), ("timeDeltas", &self.sample_deltas), ("weight", &self.sample_weights)];
        write_columns(out, &columns)?;
        write!(out, ",\n\"markers\":{{\"length\":{}", self.marker_names.count)?;
        let columns = [
            ("category", &self.marker_categories),
            ("data", &self.marker_data),
            ("endTime", &self.marker_ends),
            ("name", &self.marker_names),
            ("phase", &self.marker_phases),
            ("startTime", &self.marker_starts),
        ];
        write_columns(out, &columns)?;
        if self.allocation_times.count > 0 {
            write!(out, ",\n\"nativeAllocations\":{{\"length\":{}", self.allocation_times.count)?;
            write!(out, ",\"weightType\":\"bytes\"")?;
            let columns = [
                ("time", &self.allocation_times),
                ("weight", &self.allocation_weights),
                ("stack", &self.allocation_stacks),
                ("memoryAddress", &self.allocation_addresses),
                ("threadId", &self.allocation_threads),
            ];
            write_columns(out, &columns)?;
        }
        Ok(())
    }
}

/// Completes the object of a table.
fn write_columns(out: &mut dyn Write, columns: &[(&str, &SpilledColumn)]) -> io::Result<()> {
    for (name, column) in columns {
        write!(out, ",\"{name}\":")?;
        column.write(out)?;
    }
    out.write_all(b"}")
}

fn write_option(out: &mut Vec<u8>, number: Option<usize>) {
    match number {
        Some(number) => out.extend(number.to_string().bytes()),
        None => out.extend(b"null"),
    }
}

/// Writes nanoseconds as milliseconds, exactly.
pub(super) fn write_milliseconds(out: &mut Vec<u8>, ns: u64) {
    let (whole, rest) = (ns / 1_000_000, ns % 1_000_000);
    let text = if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:06}") };
    out.extend(text.bytes());
}
