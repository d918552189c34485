//! `memory_history()`: every allocated block, as columns.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use stackweave_profile::memory::{AllocationHistory, HistoryRow, read_history};
use stackweave_recording::ReadError;

use super::history_stacks::HistoryStacks;
use super::memory::{SelectedProcess, has_no_history};
use super::seconds;
use crate::errors::Error;

/// Columns of little-endian numbers.
#[derive(Default)]
struct BlockColumns {
    time: Vec<u8>,
    freed_at: Vec<u8>,
    address: Vec<u8>,
    size: Vec<u8>,
    device: Vec<u8>,
    process: Vec<u8>,
    thread: Vec<u8>,
    allocator: Vec<u8>,
    tag: Vec<u8>,
    stack: Vec<u8>,
}

/// The texts and stacks that rows refer to by number.
#[derive(Default)]
struct NameTables {
    allocators: Vec<Arc<str>>,
    tags: Vec<Option<Arc<str>>>,
    stacks: HistoryStacks,
}

/// Returns the columns of all blocks. If `with_stacks` is set, also returns their stacks, whose frames must be named for that.
pub(super) fn columns<'py>(
    py: Python<'py>,
    selected: &[SelectedProcess],
    with_stacks: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let result = py.detach(|| -> Result<(BlockColumns, NameTables, Vec<String>), ReadError> {
        let (mut columns, mut names, mut remarks) = <(BlockColumns, NameTables, Vec<String>)>::default();
        names.tags.push(None);
        for (index, selected) in selected.iter().enumerate() {
            let history = read_history(&selected.process.recording, &selected.query, &mut |_| {})?;
            remarks.extend(history.missing.sentences());
            if has_no_history(selected) {
                let pid = selected.process.recording.start().pid;
                remarks.push(format!("Process {pid} has only sums, and no history."));
            }
            columns.add(index, selected, &history, &mut names);
        }
        Ok((columns, names, remarks))
    });
    let (columns, names, remarks) = result.map_err(Error::from)?;
    let dict = PyDict::new(py);
    for (name, bytes) in columns.names() {
        dict.set_item(name, PyBytes::new(py, &bytes))?;
    }
    dict.set_item("allocators", texts(names.allocators.iter().map(|text| Some(&**text)), py)?)?;
    dict.set_item("tags", texts(names.tags.iter().map(Option::as_deref), py)?)?;
    if with_stacks {
        dict.set_item("stacks", names.stacks.columns(py, selected)?)?;
    }
    dict.set_item("remarks", remarks)?;
    Ok(dict)
}

fn texts<'a, 'py>(texts: impl Iterator<Item = Option<&'a str>>, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, texts.collect::<Vec<_>>())
}

impl BlockColumns {
    fn add(&mut self, index: usize, selected: &SelectedProcess, history: &AllocationHistory, names: &mut NameTables) {
        let recording = &selected.process.recording;
        let pid = recording.start().pid;
        let number_of = |texts: &mut Vec<Option<Arc<str>>>, text: &Arc<str>| {
            let found = texts.iter().position(|known| known.as_ref() == Some(text));
            found.unwrap_or_else(|| {
                texts.push(Some(Arc::clone(text)));
                texts.len() - 1
            }) as u32
        };
        let tags: Vec<u32> = (0..)
            .zip(&history.tags)
            .map(|(number, tag)| if number == 0 { 0 } else { number_of(&mut names.tags, tag) })
            .collect();
        let mut texts: Vec<Option<Arc<str>>> = names.allocators.drain(..).map(Some).collect();
        let allocators: Vec<u32> = history.allocators.iter().map(|name| number_of(&mut texts, name)).collect();
        names.allocators = texts.into_iter().flatten().collect();
        for row in &history.rows {
            let stack = names.stacks.number(index, recording, row.stack);
            let numbers = [allocators[row.allocator as usize], tags[row.tag as usize], stack];
            let tid = recording.dictionary().thread(row.thread).map_or(0, |thread| thread.tid);
            self.push(row, selected.offset, [pid, tid], numbers);
        }
    }

    fn push(&mut self, row: &HistoryRow, offset: u64, [pid, tid]: [u32; 2], [allocator, tag, stack]: [u32; 3]) {
        let time = |ns: u64| seconds(ns.saturating_add(offset).cast_signed());
        self.time.extend(time(row.time_ns).to_le_bytes());
        self.freed_at.extend(row.freed_ns.map_or(f64::NAN, time).to_le_bytes());
        self.address.extend(row.address.to_le_bytes());
        self.size.extend(row.size.to_le_bytes());
        self.device.extend(row.device.to_le_bytes());
        self.process.extend(pid.to_le_bytes());
        self.thread.extend(tid.to_le_bytes());
        self.allocator.extend(allocator.to_le_bytes());
        self.tag.extend(tag.to_le_bytes());
        self.stack.extend(stack.to_le_bytes());
    }

    fn names(self) -> [(&'static str, Vec<u8>); 10] {
        [
            ("time", self.time),
            ("freed_at", self.freed_at),
            ("address", self.address),
            ("size", self.size),
            ("device", self.device),
            ("process", self.process),
            ("thread", self.thread),
            ("allocator", self.allocator),
            ("tag", self.tag),
            ("stack", self.stack),
        ]
    }
}
