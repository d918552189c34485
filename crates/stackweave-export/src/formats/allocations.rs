//! A table of allocations by stack, allocator, thread and tag, those with the most bytes first.
//!
//! Comma-separated values with a header, like memray's table with more columns. The selected measure determines which
//! bytes are counted; the default is the peak.

use std::io::{self, Write};

use stackweave_profile::memory::{DeviceUsage, MemoryQuery, MemoryUsage, UsageRow, read_usage};
use stackweave_profile::{Frame, Measure, RecordedNames, View};
use stackweave_recording::ProcessRecording;

use crate::error::ExportError;
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

const HEADER: &str = "allocator,num_allocations,size,tid,thread_name,tag,device,pid,function,location,stack_trace\n";

/// The columns of numbers, which may be negative.
const NUMBERS: [usize; 5] = [1, 2, 3, 6, 7];

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let measure = source.options().part.measure.unwrap_or(Measure::PeakBytes);
    let mut tables = Vec::new();
    let mut is_there = false;
    for (index, process) in source.processes().iter().enumerate() {
        let table = AllocationTable::read(source, index, process, measure)?;
        is_there |= table.usage.devices.iter().any(|device| device.totals.figures.allocations > 0);
        tables.push(table);
    }
    if !is_there {
        return Err(ExportError::Unsupported("the recording has no memory, which this table lists".to_owned()));
    }
    let mut rows: Vec<(u64, u64, usize, i64, UsageRow)> = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        for device in &table.usage.devices {
            rows.extend(
                counted(device, measure).map(|(bytes, blocks, row)| (bytes, blocks, index, device.device, row)),
            );
        }
    }
    rows.sort_by_key(|(bytes, blocks, ..)| core::cmp::Reverse((*bytes, *blocks)));
    out.write_all(HEADER.as_bytes())?;
    for (bytes, blocks, index, device, row) in rows {
        tables[index].write(&row, (bytes, blocks, device), out)?;
    }
    Ok(())
}

/// Returns the rows with their values of a measure, without rows of value 0.
fn counted(device: &DeviceUsage, measure: Measure) -> impl Iterator<Item = (u64, u64, UsageRow)> {
    device.rows.iter().filter_map(move |row| {
        let figures = &row.figures;
        let (bytes, blocks) = match measure {
            Measure::PeakBytes => (figures.peak_bytes, figures.peak_blocks),
            Measure::LiveBytes => (row.leaked_bytes, row.leaked_blocks),
            Measure::TemporaryBytes => (figures.temporary_bytes, figures.temporary),
            _ => (figures.bytes, figures.allocations),
        };
        (blocks > 0).then_some((bytes, blocks, *row))
    })
}

/// The memory usage of a process, with the names of its frames.
struct AllocationTable {
    process: ProcessRecording,
    usage: MemoryUsage,
    names: RecordedNames,
    /// The selected view, and the default view, which hides frames inside interpreters and libraries.
    views: [VisibleFrames; 2],
    line: String,
}

impl AllocationTable {
    fn read(
        source: &Source<'_>,
        index: usize,
        process: &ProcessRecording,
        measure: Measure,
    ) -> Result<Self, ExportError> {
        let part = &source.options().part;
        if matches!(measure, Measure::WallTime | Measure::Samples) {
            return Err(ExportError::Unsupported(format!("{} is not a measure of memory", measure.describe())));
        }
        let query = MemoryQuery {
            range: part.range.as_ref().map(|range| source.time_of_process(process, range)),
            threads: part.threads.clone(),
            devices: part.device.into_iter().collect(),
            ..MemoryQuery::default()
        };
        let usage = source.usage(index, |progress| read_usage(process, &query, progress))?;
        let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
        let views = [source.view(), &View::default()].map(|view| VisibleFrames::new(process, view));
        Ok(Self { process: process.clone(), usage, names: source.names(process, &frames), views, line: String::new() })
    }

    fn write(
        &mut self,
        row: &UsageRow,
        (bytes, blocks, device): (u64, u64, i64),
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.line.clear();
        let [stack, seen] = [0, 1].map(|view| self.frames(row.stack, view));
        let thread = self.process.dictionary().thread(row.thread);
        let text = |texts: &[std::sync::Arc<str>], number: u32| texts.get(number as usize).cloned().unwrap_or_default();
        let innermost = seen.first().or(stack.first());
        let cells = [
            text(&self.usage.allocators, row.allocator).to_string(),
            blocks.to_string(),
            bytes.to_string(),
            thread.map_or(row.thread, |thread| thread.tid).to_string(),
            thread.map_or_else(String::new, |thread| thread.name.clone()),
            text(&self.usage.tags, row.tag).to_string(),
            device.to_string(),
            self.process.start().pid.to_string(),
            innermost.map_or_else(String::new, name),
            innermost.map_or_else(String::new, |frame| location(frame, ':')),
            stack.iter().map(|frame| format!("{};{}", name(frame), location(frame, ';'))).collect::<Vec<_>>().join("|"),
        ];
        for (number, cell) in cells.iter().enumerate() {
            if number > 0 {
                self.line.push(',');
            }
            let guard = if NUMBERS.contains(&number) { "" } else { guard(cell) };
            push_cell(&mut self.line, &format!("{guard}{cell}"));
        }
        self.line.push('\n');
        out.write_all(self.line.as_bytes())
    }

    /// Returns the visible frames of a stack, innermost first.
    fn frames(&mut self, stack: u32, view: usize) -> Vec<Frame> {
        let numbers: Vec<u32> = self.process.dictionary().frames_of(stack).collect();
        let mut is_library = false;
        let mut outermost_first: Vec<Frame> = Vec::new();
        for number in numbers.into_iter().rev() {
            let frames = self.names.of(number);
            let seen = self.views[view].visible_bits(number, frames, &mut is_library);
            let shown = frames.iter().enumerate().rev().filter(|(index, _)| seen >> index & 1 == 1);
            outermost_first.extend(shown.map(|(_, frame)| frame.clone()));
        }
        outermost_first.reverse();
        outermost_first
    }
}

fn name(frame: &Frame) -> String {
    frame.qualname.as_ref().unwrap_or(&frame.name).to_string()
}

/// Returns the file and line.
fn location(frame: &Frame, between: char) -> String {
    let file = frame.filename.as_deref().unwrap_or("??");
    let line = frame.position.line.or(frame.first_line).unwrap_or(0);
    format!("{file}{between}{line}")
}

/// Returns the prefix for a text that spreadsheets would treat as a formula, since names are untrusted. They show the
/// text after the apostrophe.
fn guard(cell: &str) -> &'static str {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" }
}

/// Appends a value, with quotes if necessary.
fn push_cell(line: &mut String, cell: &str) {
    if cell.contains([',', '"', '\n', '\r']) {
        line.push('"');
        line.push_str(&cell.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(cell);
    }
}
