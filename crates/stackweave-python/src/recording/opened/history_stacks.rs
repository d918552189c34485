//! The stacks of an allocation history. Each is an innermost frame and the stack of its callers, so that stacks share their outer
//! frames.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use stackweave_profile::Frame;
use stackweave_recording::ProcessRecording;

use super::memory::SelectedProcess;

/// The stacks that rows refer to by number, from 1, and the stacks of their callers, which have smaller numbers.
#[derive(Debug, Default)]
pub(super) struct HistoryStacks {
    stacks: Vec<StackNode>,
    /// The numbers by process and by the stack's number there.
    known: HashMap<(usize, u32), u32>,
}

#[derive(Clone, Copy, Debug)]
struct StackNode {
    process: usize,
    /// The number of the callers' stack, or 0.
    callers: u32,
    /// The number of the innermost frame in the process.
    frame: u32,
}

/// Columns of little-endian numbers.
#[derive(Debug, Default)]
struct StackColumns {
    stack: Vec<u8>,
    callers: Vec<u8>,
    depth: Vec<u8>,
    frame: Vec<u8>,
}

impl HistoryStacks {
    /// Returns the number of a stack of a process; 0 if it has no frames. The stacks of its callers are numbered first.
    pub(super) fn number(&mut self, process: usize, recording: &ProcessRecording, stack: u32) -> u32 {
        let mut waiting = Vec::new();
        let (mut next, mut callers) = (stack, 0);
        while let Some((next_callers, frame)) = recording.dictionary().stack(next) {
            if let Some(known) = self.known.get(&(process, next)) {
                callers = *known;
                break;
            }
            waiting.push((next, frame));
            next = next_callers;
        }
        while let Some((stack, frame)) = waiting.pop() {
            self.stacks.push(StackNode { process, callers, frame });
            callers = self.stacks.len() as u32;
            self.known.insert((process, stack), callers);
        }
        callers
    }

    /// Returns the columns of all stacks. If a frame has several functions, the outer ones are separate stacks, with numbers after
    /// all others.
    pub(super) fn columns<'py>(&self, py: Python<'py>, selected: &[SelectedProcess]) -> PyResult<Bound<'py, PyDict>> {
        let mut named = Vec::new();
        for (process, selected) in selected.iter().enumerate() {
            let mut numbers: Vec<u32> =
                self.stacks.iter().filter(|stack| stack.process == process).map(|stack| stack.frame).collect();
            numbers.sort_unstable();
            numbers.dedup();
            named.push(selected.process.frames(py, &numbers)?);
        }
        let mut columns = StackColumns::default();
        let mut frames: Vec<Option<Arc<Frame>>> = Vec::new();
        let mut first_frames: HashMap<(usize, u32), u32> = HashMap::new();
        let mut depths: Vec<u32> = vec![0];
        let mut outer_number = self.stacks.len() as u32;
        for (stack, number) in self.stacks.iter().zip(1..) {
            let chain = named[stack.process].get(&stack.frame).filter(|chain| !chain.is_empty());
            let length = chain.map_or(1, |chain| chain.len());
            // The functions of a frame are consecutive, outermost first.
            let first_frame = *first_frames.entry((stack.process, stack.frame)).or_insert_with(|| {
                let first_frame = frames.len() as u32;
                match chain {
                    Some(chain) => frames.extend(chain.iter().rev().cloned().map(Some)),
                    None => frames.push(None),
                }
                first_frame
            });
            let (mut callers, mut depth) = (stack.callers, depths[stack.callers as usize]);
            for index in 0..length {
                let is_innermost = index + 1 == length;
                outer_number += u32::from(!is_innermost);
                let number_of_stack = if is_innermost { number } else { outer_number };
                depth += 1;
                columns.row([number_of_stack, callers, depth, first_frame + index as u32]);
                callers = number_of_stack;
            }
            depths.push(depth);
        }
        columns.into_dict(py, &frames)
    }
}

impl StackColumns {
    fn row(&mut self, row: [u32; 4]) {
        let columns = [&mut self.stack, &mut self.callers, &mut self.depth, &mut self.frame];
        for (column, value) in columns.into_iter().zip(row) {
            column.extend(value.to_le_bytes());
        }
    }

    fn into_dict<'py>(self, py: Python<'py>, frames: &[Option<Arc<Frame>>]) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, bytes) in
            [("stack", self.stack), ("callers", self.callers), ("depth", self.depth), ("frame", self.frame)]
        {
            dict.set_item(name, PyBytes::new(py, &bytes))?;
        }
        let texts = |of: fn(&Frame) -> Option<&str>| -> Vec<Option<&str>> {
            frames.iter().map(|frame| frame.as_deref().and_then(of)).collect()
        };
        dict.set_item("names", texts(|frame| Some(frame.qualname.as_ref().unwrap_or(&frame.name))))?;
        dict.set_item("filenames", texts(|frame| frame.filename.as_deref().or(frame.module.as_deref())))?;
        dict.set_item("kinds", texts(|frame| Some(frame.kind.as_str())))?;
        let line = |frame: &Option<Arc<Frame>>| frame.as_ref().and_then(|frame| frame.position.line);
        dict.set_item("lines", frames.iter().map(line).collect::<Vec<_>>())?;
        Ok(dict)
    }
}
