//! `memory_history()`: every block that was taken, as columns.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use stackweave_profile::memory::{AllocationHistory, HistoryRow, read_history};
use stackweave_recording::ReadError;

use super::history_stacks::HistoryStacks;
use super::memory::{Asked, has_no_history};
use super::seconds;
use crate::errors::Error;

/// One value after another, little-endian.
#[derive(Default)]
struct Columns {
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

/// Texts that rows have numbers of, and the stacks that they are at.
#[derive(Default)]
struct Named {
    allocators: Vec<Arc<str>>,
    tags: Vec<Option<Arc<str>>>,
    stacks: HistoryStacks,
}

/// Returns the columns of all blocks. The stacks that they refer to are with them if they are wanted: that needs names.
pub(super) fn columns<'py>(py: Python<'py>, asked: &[Asked], with_stacks: bool) -> PyResult<Bound<'py, PyDict>> {
    let made = py.detach(|| -> Result<(Columns, Named, Vec<String>), ReadError> {
        let (mut columns, mut named, mut remarks) = <(Columns, Named, Vec<String>)>::default();
        named.tags.push(None);
        for (index, asked) in asked.iter().enumerate() {
            let history = read_history(&asked.process.recording, &asked.query, &mut |_| {})?;
            remarks.extend(history.missing.sentences());
            if has_no_history(asked) {
                let pid = asked.process.recording.start().pid;
                remarks.push(format!("Process {pid} has only sums, and no history."));
            }
            columns.add(index, asked, &history, &mut named);
        }
        Ok((columns, named, remarks))
    });
    let (columns, named, remarks) = made.map_err(Error::from)?;
    let told = PyDict::new(py);
    for (name, bytes) in columns.named() {
        told.set_item(name, PyBytes::new(py, &bytes))?;
    }
    told.set_item("allocators", texts(named.allocators.iter().map(|text| Some(&**text)), py)?)?;
    told.set_item("tags", texts(named.tags.iter().map(Option::as_deref), py)?)?;
    if with_stacks {
        told.set_item("stacks", named.stacks.columns(py, asked)?)?;
    }
    told.set_item("remarks", remarks)?;
    Ok(told)
}

fn texts<'a, 'py>(texts: impl Iterator<Item = Option<&'a str>>, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, texts.collect::<Vec<_>>())
}

impl Columns {
    fn add(&mut self, index: usize, asked: &Asked, history: &AllocationHistory, named: &mut Named) {
        let recording = &asked.process.recording;
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
            .map(|(number, tag)| if number == 0 { 0 } else { number_of(&mut named.tags, tag) })
            .collect();
        let mut texts: Vec<Option<Arc<str>>> = named.allocators.drain(..).map(Some).collect();
        let allocators: Vec<u32> = history.allocators.iter().map(|name| number_of(&mut texts, name)).collect();
        named.allocators = texts.into_iter().flatten().collect();
        for row in &history.rows {
            let stack = named.stacks.number(index, recording, row.stack);
            let numbers = [allocators[row.allocator as usize], tags[row.tag as usize], stack];
            let tid = recording.dictionary().thread(row.thread).map_or(0, |thread| thread.tid);
            self.push(row, asked.offset, [pid, tid], numbers);
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

    fn named(self) -> [(&'static str, Vec<u8>); 10] {
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
