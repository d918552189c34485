//! A table of allocations by stack, allocator, thread and tag, those with the most bytes first.
//!
//! Comma-separated values with a header, like memray's table with more columns. The selected measure determines which
//! bytes are counted; the default is the peak. Rows that differ only in hidden frames are one.

use core::fmt::{self, Write as _};
use std::collections::HashMap;
use std::io::{self, Write};

use stackweave_profile::memory::{DeviceUsage, MemoryQuery, MemoryUsage, UsageRow, read_usage};
use stackweave_profile::{Frame, Measure, RecordedNames, View};
use stackweave_recording::ProcessRecording;

use crate::error::ExportError;
use crate::source::Source;
use crate::visible_stacks::{FrameFunction, VisibleStacks};

const HEADER: &str = "allocator,num_allocations,size,tid,thread_name,tag,device,pid,function,location,stack_trace\n";

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
    let mut rows: HashMap<RowKey, (u64, u64)> = HashMap::new();
    for (index, table) in tables.iter_mut().enumerate() {
        table.add_rows(index, measure, &mut rows);
    }
    let mut rows: Vec<(RowKey, (u64, u64))> = rows.into_iter().collect();
    rows.sort_unstable_by_key(|(key, sums)| (core::cmp::Reverse(*sums), *key));
    out.write_all(HEADER.as_bytes())?;
    for (key, sums) in rows {
        tables[key.process].write(&key, sums, out)?;
    }
    Ok(())
}

/// The values that are equal in rows that are merged. Stacks are numbers in [`VisibleStacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RowKey {
    /// The index of the process.
    process: usize,
    device: i64,
    stack: u32,
    /// The innermost function that is not internal, with its frame.
    innermost: Option<FrameFunction>,
    allocator: u32,
    thread: u32,
    tag: u32,
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
    /// The stacks in the selected view, and in the default view.
    views: [VisibleStacks; 2],
    line: String,
    cell: String,
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
        Ok(Self {
            process: process.clone(),
            usage,
            names: source.names(process, &frames),
            views: [source.view(), &View::default()].map(|view| VisibleStacks::new(process, view)),
            line: String::new(),
            cell: String::new(),
        })
    }

    /// Adds the rows of the process with this index: those with equal cells are one.
    fn add_rows(&mut self, process: usize, measure: Measure, rows: &mut HashMap<RowKey, (u64, u64)>) {
        let Self { usage, names, views: [selected, default], .. } = self;
        for device in &usage.devices {
            for (bytes, blocks, row) in counted(device, measure) {
                let stack = selected.number(row.stack, names);
                let seen = default.number(row.stack, names);
                let innermost = default.functions(seen).next().or_else(|| selected.functions(stack).next());
                let UsageRow { allocator, thread, tag, .. } = row;
                let key = RowKey { process, device: device.device, stack, innermost, allocator, thread, tag };
                let sums = rows.entry(key).or_default();
                *sums = (sums.0.saturating_add(bytes), sums.1.saturating_add(blocks));
            }
        }
    }

    fn write(&mut self, key: &RowKey, (bytes, blocks): (u64, u64), out: &mut dyn Write) -> io::Result<()> {
        let Self { process, usage, names, views: [selected, _], line, cell } = self;
        line.clear();
        let thread = process.dictionary().thread(key.thread);
        let text = |texts: &[std::sync::Arc<str>], number: u32| texts.get(number as usize).cloned().unwrap_or_default();
        let of = |(frame, index): FrameFunction| &names.of(frame)[index as usize];
        push_text(line, &text(&usage.allocators, key.allocator));
        let tid = thread.map_or(key.thread, |thread| thread.tid);
        push(line, format_args!(",{blocks},{bytes},{tid},"));
        push_text(line, thread.map_or("", |thread| &thread.name));
        line.push(',');
        push_text(line, &text(&usage.tags, key.tag));
        push(line, format_args!(",{},{},", key.device, process.start().pid));
        push_text(line, key.innermost.map_or("", |function| name(of(function))));
        line.push(',');
        cell.clear();
        key.innermost.into_iter().for_each(|function| push_location(cell, of(function), ':'));
        push_text(line, cell);
        line.push(',');
        cell.clear();
        for (index, function) in selected.functions(key.stack).enumerate() {
            let frame = of(function);
            push(cell, format_args!("{}{};", if index == 0 { "" } else { "|" }, name(frame)));
            push_location(cell, frame, ';');
        }
        push_text(line, cell);
        line.push('\n');
        out.write_all(line.as_bytes())
    }
}

fn push(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing to memory can't fail.
    let _ = text.write_fmt(arguments);
}

fn name(frame: &Frame) -> &str {
    frame.qualname.as_ref().unwrap_or(&frame.name)
}

/// Appends the file and line.
fn push_location(text: &mut String, frame: &Frame, between: char) {
    let file = frame.filename.as_deref().unwrap_or("??");
    let line = frame.position.line.or(frame.first_line).unwrap_or(0);
    push(text, format_args!("{file}{between}{line}"));
}

/// Appends a text, guarded.
fn push_text(line: &mut String, text: &str) {
    match guard(text) {
        "" => push_cell(line, text),
        guard => push_cell(line, &format!("{guard}{text}")),
    }
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
