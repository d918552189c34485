//! A folder of Parquet files: tables of events, stacks, frames, modules and threads, with a partition for each process.
//!
//! `events/process=machine-4242-1700000000000000000/part-0.parquet`: readers call folders with such names a Hive
//! partition, so the exports of many machines, put into one folder, are one dataset.

mod events;
mod functions;
mod history;
mod schemas;
mod table;

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;

use stackweave_files::output::OutputFolder;
use stackweave_recording::file::{NumberMap, RecordedFrame};

use crate::activity::{NamedProcess, visit_process};
use crate::budget::Budget;
use crate::error::ExportError;
use crate::formats::parquet::events::EventRows;
use crate::formats::parquet::functions::TableNumbers;
use crate::formats::parquet::table::{CellValue, ParquetTable};
use crate::source::Source;

/// Writes the files to a folder, and returns their size in bytes.
pub(crate) fn write(source: &Source<'_>, folder: &mut OutputFolder) -> Result<u64, ExportError> {
    let folder = &RefCell::new(folder);
    let mut bytes = 0;
    let mut taken = HashSet::new();
    for (index, process) in NamedProcess::all(source).iter().enumerate() {
        let mut name = partition(process);
        if !taken.insert(name.clone()) {
            name = format!("{name}-{index}");
            taken.insert(name.clone());
        }
        let part = Partition { folder, name: &name, process, budget: source.budget() };
        let mut frames = TableNumbers::default();
        let tables = [part.table("events", schemas::EVENTS)?, part.table("allocations", schemas::ALLOCATIONS)?];
        let mut rows = EventRows::new(process, &mut frames, tables);
        visit_process(source, index, &mut |event| rows.add(event))?;
        bytes += rows.finish()?;
        bytes += part.stacks(&mut frames)?;
        bytes += part.frames(&mut frames)?;
        bytes += part.modules()?;
        bytes += part.threads()?;
        bytes += part.processes()?;
    }
    Ok(bytes)
}

/// The maximum length of a host name on Linux. A recording may have any name, and names of folders are limited.
const LONGEST_HOST: usize = 64;

/// Returns the name of a process's partition, which is unique.
fn partition(process: &NamedProcess<'_>) -> String {
    let start = process.recording.start();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let plain = start.host.chars().map(|letter| if is_plain(letter) { letter } else { '_' });
    let host: String = plain.take(LONGEST_HOST).collect();
    let host = if host.is_empty() { "unknown" } else { &host };
    format!("process={host}-{}-{}", start.pid, start.started_wall_ns)
}

/// The tables of one process.
struct Partition<'a, 'folder> {
    folder: &'a RefCell<&'folder mut OutputFolder>,
    name: &'a str,
    process: &'a NamedProcess<'a>,
    budget: &'a Budget,
}

impl Partition<'_, '_> {
    fn table(&self, name: &str, schema: &str) -> Result<ParquetTable, ExportError> {
        let path = Path::new(name).join(self.name).join("part-0.parquet");
        ParquetTable::create(self.folder.borrow_mut().file(&path)?, schema, self.budget)
    }

    /// Writes the stacks: each is its innermost frame and the stack of its callers. If a frame stands for several
    /// functions, the outer ones are additional stacks, numbered after those of the recording.
    fn stacks(&self, frames: &mut TableNumbers) -> Result<u64, ExportError> {
        let dictionary = self.process.recording.dictionary();
        let mut table = self.table("stacks", schemas::STACKS)?;
        let mut depths: NumberMap<i64> = NumberMap::default();
        let mut extra = i64::from(dictionary.last_stack());
        for (stack, (callers, frame)) in dictionary.stacks() {
            let mut depth = depths.get(callers).copied().unwrap_or(0);
            let mut callers = if depth == 0 { CellValue::Null } else { CellValue::number(callers) };
            let chain = frames.of(self.process, frame);
            let last = chain.end - 1;
            for frame in chain {
                depth += 1;
                let own = if frame == last { CellValue::Integer(stack.into()) } else { CellValue::Integer(extra + 1) };
                extra += i64::from(frame != last);
                table.row([own, callers, CellValue::Integer(frame.into()), CellValue::Integer(depth)])?;
                callers = own;
            }
            depths.insert(stack, depth);
        }
        table.finish()
    }

    fn frames(&self, frames: &mut TableNumbers) -> Result<u64, ExportError> {
        let dictionary = self.process.recording.dictionary();
        let mut table = self.table("frames", schemas::FRAMES)?;
        let line = |line: Option<u32>| CellValue::some(line, |line| CellValue::Integer(line.into()));
        for (number, recorded) in dictionary.frames() {
            let module = match recorded {
                RecordedFrame::Native { module, .. } => *module,
                _ => None,
            };
            let own = frames.of(self.process, number);
            for (own, frame) in own.zip(self.process.chain(number)) {
                table.row([
                    CellValue::Integer(own.into()),
                    CellValue::Integer(frames.function_of(own).into()),
                    CellValue::text(frame.kind.as_str()),
                    CellValue::text(&frame.name),
                    CellValue::some(frame.qualname.as_deref(), CellValue::text),
                    CellValue::some(frame.filename.as_deref(), CellValue::text),
                    line(frame.first_line),
                    line(frame.position.line),
                    line(frame.position.column),
                    line(module),
                    CellValue::some(frame.address, CellValue::word),
                    CellValue::Bool(frame.is_inlined),
                ])?;
            }
        }
        table.finish()
    }

    fn modules(&self) -> Result<u64, ExportError> {
        let mut table = self.table("modules", schemas::MODULES)?;
        for (number, module) in self.process.recording.dictionary().modules() {
            let build_id = module.build_id.as_ref().map(ToString::to_string);
            table.row([
                CellValue::Integer(number.into()),
                CellValue::text(&module.path.to_string_lossy()),
                CellValue::some(build_id.as_deref(), CellValue::text),
                CellValue::word(module.bias),
                CellValue::word(module.start),
                CellValue::word(module.end),
            ])?;
        }
        table.finish()
    }

    fn threads(&self) -> Result<u64, ExportError> {
        let mut table = self.table("threads", schemas::THREADS)?;
        for thread in self.process.recording.dictionary().threads() {
            table.row([
                CellValue::Integer(thread.number.into()),
                CellValue::Integer(thread.tid.into()),
                CellValue::text(&thread.name),
            ])?;
        }
        table.finish()
    }

    fn processes(&self) -> Result<u64, ExportError> {
        let recording = self.process.recording;
        let start = recording.start();
        let mut table = self.table("processes", schemas::PROCESSES)?;
        let words = serde_json::Value::from(start.command_line.clone()).to_string();
        table.row([
            CellValue::Integer(start.pid.into()),
            CellValue::Integer(start.parent_pid.into()),
            CellValue::some(start.forked_from, |pid| CellValue::Integer(pid.into())),
            CellValue::text(&start.host),
            CellValue::text(&start.boot_id),
            CellValue::text(&start.executable),
            CellValue::text(&words),
            CellValue::some(start.python.as_deref(), CellValue::text),
            CellValue::text(&start.stackweave_version),
            CellValue::Integer(start.started_wall_ns),
            CellValue::word(start.started_monotonic_ns),
            CellValue::word(recording.event_count()),
            CellValue::text(&recording.missing().sentences().join(" ")),
        ])?;
        table.finish()
    }
}
