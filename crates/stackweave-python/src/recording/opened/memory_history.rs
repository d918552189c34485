//! `memory_history()`: every block that was taken, as columns.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use stackweave_profile::memory::{AllocationHistory, HistoryRow, read_history};
use stackweave_recording::ReadError;

use super::memory::{Asked, has_no_history, stack_of};
use super::named_process::NamedProcess;
use super::{read_error, seconds};

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

/// Texts and stacks that rows have numbers of.
#[derive(Default)]
struct Named {
    allocators: Vec<Arc<str>>,
    tags: Vec<Option<Arc<str>>>,
    /// Which process's, and its number there.
    stacks: Vec<Option<(usize, u32)>>,
}

pub(super) fn columns<'py>(py: Python<'py>, asked: &[Asked]) -> PyResult<Bound<'py, PyDict>> {
    let made = py.detach(|| -> Result<(Columns, Named, Vec<String>), ReadError> {
        let (mut columns, mut named, mut remarks) = <(Columns, Named, Vec<String>)>::default();
        named.tags.push(None);
        named.stacks.push(None);
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
    let (columns, named, remarks) = made.map_err(|error| read_error(&error))?;
    let told = PyDict::new(py);
    for (name, bytes) in columns.named() {
        told.set_item(name, PyBytes::new(py, &bytes))?;
    }
    told.set_item("allocators", texts(named.allocators.iter().map(|text| Some(&**text)), py)?)?;
    told.set_item("tags", texts(named.tags.iter().map(Option::as_deref), py)?)?;
    told.set_item("stacks", stacks(py, asked, &named.stacks)?)?;
    told.set_item("remarks", remarks)?;
    Ok(told)
}

fn texts<'a, 'py>(texts: impl Iterator<Item = Option<&'a str>>, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, texts.collect::<Vec<_>>())
}

fn stacks<'py>(py: Python<'py>, asked: &[Asked], of: &[Option<(usize, u32)>]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let mut known: Vec<HashMap<_, _>> = asked.iter().map(|_| HashMap::new()).collect();
    for stack in of {
        let process = |index: usize| -> &Arc<NamedProcess> { &asked[index].process };
        let object = match stack {
            Some((index, number)) => stack_of(py, &mut known[*index], process(*index), *number)?,
            None => None,
        };
        list.append(object)?;
    }
    Ok(list)
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
        let mut stacks: HashMap<u32, u32> = HashMap::new();
        for row in &history.rows {
            let stack = *stacks.entry(row.stack).or_insert_with(|| {
                if row.stack == 0 {
                    return 0;
                }
                named.stacks.push(Some((index, row.stack)));
                (named.stacks.len() - 1) as u32
            });
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
