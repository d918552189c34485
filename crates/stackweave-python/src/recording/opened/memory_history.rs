//! `memory_history()`: every allocated block, as columns.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_profile::memory::{AllocationHistory, read_history};
use stackweave_recording::ReadError;

use super::column::Column;
use super::history_stacks::HistoryStackNumbers;
use super::memory::{SelectedProcess, has_no_history};
use super::seconds;
use crate::errors::Error;

/// The columns of all processes.
#[derive(Default)]
struct BlockColumns {
    /// Seconds, as words.
    time: Vec<u64>,
    freed_at: Vec<u64>,
    address: Vec<u64>,
    size: Vec<u64>,
    device: Vec<u64>,
    process: Vec<u32>,
    thread: Vec<u32>,
    allocator: Vec<u32>,
    tag: Vec<u32>,
    stack: Vec<u32>,
}

/// The texts that rows refer to by number.
#[derive(Default)]
struct NameTables {
    allocators: Vec<Arc<str>>,
    /// Tags are numbered from 1.
    tags: Vec<Arc<str>>,
}

/// The word of the time of a block that was not freed.
const NOT_FREED: u64 = f64::INFINITY.to_bits();

/// Returns the columns of all blocks.
pub(super) fn columns<'py>(py: Python<'py>, selected: &[SelectedProcess]) -> PyResult<Bound<'py, PyDict>> {
    let result = py.detach(|| -> Result<_, ReadError> {
        let (mut columns, mut names, mut remarks) = <(BlockColumns, NameTables, Vec<String>)>::default();
        let numbers = HistoryStackNumbers::of(selected);
        for (index, selected) in selected.iter().enumerate() {
            let history = read_history(&selected.process.recording, &selected.query, &mut |_| {})?;
            remarks.extend(history.missing.sentences());
            if has_no_history(selected) {
                let pid = selected.process.recording.start().pid;
                remarks.push(format!("Process {pid} has only sums, and no history."));
            }
            columns.add(selected, history, &mut names, |stack| numbers.of_stack(index, stack));
        }
        Ok((columns.complete(), names, remarks))
    });
    let (columns, names, remarks) = result.map_err(Error::from)?;
    let dict = PyDict::new(py);
    for (name, column) in columns {
        dict.set_item(name, Bound::new(py, column)?)?;
    }
    dict.set_item("allocators", texts(py, &names.allocators)?)?;
    dict.set_item("tags", texts(py, &names.tags)?)?;
    dict.set_item("remarks", remarks)?;
    Ok(dict)
}

fn texts<'py>(py: Python<'py>, texts: &[Arc<str>]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, texts.iter().map(|text| &**text))
}

impl BlockColumns {
    /// Adds the rows of a process. Columns that need no other values are moved, not copied.
    fn add(
        &mut self,
        selected: &SelectedProcess,
        history: AllocationHistory,
        names: &mut NameTables,
        number_of_stack: impl Fn(u32) -> u32,
    ) {
        let dictionary = selected.process.recording.dictionary();
        let time = |ns: u64| seconds(ns.saturating_add(selected.offset).cast_signed()).to_bits();
        let freed = |ns: u64| if ns == AllocationHistory::NOT_FREED { NOT_FREED } else { time(ns) };
        let tid = |thread: u32| dictionary.thread(thread).map_or(0, |thread| thread.tid);
        let allocators: Vec<u32> =
            history.allocators.iter().map(|text| index_of(&mut names.allocators, text)).collect();
        let mut tags: Vec<u32> = history.tags.iter().skip(1).map(|text| index_of(&mut names.tags, text) + 1).collect();
        tags.insert(0, 0);
        let pid = selected.process.recording.start().pid;
        self.process.resize(self.process.len() + history.time_ns.len(), pid);
        append(&mut self.time, history.time_ns, time);
        append(&mut self.freed_at, history.freed_ns, freed);
        append(&mut self.address, history.address, |address| address);
        append(&mut self.size, history.size, |size| size);
        append(&mut self.device, history.device, i64::cast_unsigned);
        append(&mut self.thread, history.thread, tid);
        append(&mut self.allocator, history.allocator, |allocator| allocators[allocator as usize]);
        append(&mut self.tag, history.tag, |tag| tags[tag as usize]);
        append(&mut self.stack, history.stack, number_of_stack);
    }

    fn complete(self) -> [(&'static str, Column); 10] {
        let is_freed: Vec<bool> = self.freed_at.iter().map(|time| *time != NOT_FREED).collect();
        let is_tagged: Vec<bool> = self.tag.iter().map(|tag| *tag != 0).collect();
        let tag: Vec<u32> = self.tag.into_iter().map(|tag| tag.saturating_sub(1)).collect();
        [
            ("time", Column::words(self.time)),
            ("freed_at", Column::words(self.freed_at).with_valid(is_freed.into_iter())),
            ("address", Column::words(self.address)),
            ("size", Column::words(self.size)),
            ("device", Column::words(self.device)),
            ("process", Column::numbers(self.process)),
            ("thread", Column::numbers(self.thread)),
            ("allocator", Column::numbers(self.allocator)),
            ("tag", Column::numbers(tag).with_valid(is_tagged.into_iter())),
            ("stack", Column::not_zero(self.stack)),
        ]
    }
}

/// Appends converted values. The standard library converts a vector in its own memory if the sizes are equal.
fn append<T, U>(column: &mut Vec<U>, values: Vec<T>, convert: impl FnMut(T) -> U) {
    let mut converted: Vec<U> = values.into_iter().map(convert).collect();
    if column.is_empty() {
        *column = converted;
    } else {
        column.append(&mut converted);
    }
}

/// Returns the index of a text, which is added if it is new: there are few.
fn index_of(texts: &mut Vec<Arc<str>>, text: &Arc<str>) -> u32 {
    let found = texts.iter().position(|known| known == text);
    found.unwrap_or_else(|| {
        texts.push(Arc::clone(text));
        texts.len() - 1
    }) as u32
}
