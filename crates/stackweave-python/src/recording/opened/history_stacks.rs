//! The stacks of an allocation history. Each is an innermost frame and the stack of its callers, so that stacks share their outer
//! frames.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_profile::Frame;
use stackweave_profile::memory::read_history_stacks;
use stackweave_recording::file::NumberMap;

use super::column::Column;
use super::memory::SelectedProcess;
use crate::errors::Error;

/// The numbers of stacks of several processes: those of the first process are as in its recording, and those of further ones
/// come after them.
pub(super) struct HistoryStackNumbers<'a> {
    selected: &'a [SelectedProcess],
    /// The offset of the numbers of each process.
    offsets: Vec<u32>,
    /// The first number after all of them.
    after: u32,
}

impl<'a> HistoryStackNumbers<'a> {
    pub(super) fn of(selected: &'a [SelectedProcess]) -> Self {
        let mut after: u32 = 0;
        let mut offset = |selected: &SelectedProcess| {
            let offset = after;
            after = after.saturating_add(selected.process.recording.dictionary().last_stack());
            offset
        };
        let offsets = selected.iter().map(&mut offset).collect();
        Self { selected, offsets, after }
    }

    /// Returns the number for a stack of the process with this index; 0 if it has no frames.
    pub(super) fn of_stack(&self, process: usize, stack: u32) -> u32 {
        let dictionary = self.selected[process].process.recording.dictionary();
        let is_known = dictionary.stack(stack).is_some();
        // That many stacks are in no file.
        if is_known { self.offsets[process].saturating_add(stack) } else { 0 }
    }
}

/// The columns of stacks, and the frames that they refer to.
#[derive(Debug, Default)]
struct StackColumns {
    stack: Vec<u32>,
    callers: Vec<u32>,
    depth: Vec<u32>,
    frame: Vec<u32>,
    frames: Vec<Option<Arc<Frame>>>,
}

/// Returns the columns of the stacks of all blocks, and of the stacks of their callers. If a frame has several functions, the
/// outer ones are separate stacks, with numbers after all others.
pub(super) fn columns<'py>(py: Python<'py>, selected: &[SelectedProcess]) -> PyResult<Bound<'py, PyDict>> {
    let mut columns = StackColumns::default();
    let numbers = HistoryStackNumbers::of(selected);
    let mut outer_number = numbers.after;
    for (selected, offset) in selected.iter().zip(&numbers.offsets) {
        let used = py.detach(|| used_stacks(selected))?;
        columns.add(py, selected, &used, (*offset, &mut outer_number))?;
    }
    columns.into_dict(py)
}

/// Returns the stacks of the history and of their callers.
fn used_stacks(selected: &SelectedProcess) -> PyResult<NumberMap<()>> {
    let dictionary = selected.process.recording.dictionary();
    let mut used = NumberMap::default();
    let read = read_history_stacks(&selected.process.recording, &selected.query, &mut |stack| {
        let mut next = stack;
        while let Some((callers, _)) = dictionary.stack(next).filter(|_| used.get(next).is_none()) {
            used.insert(next, ());
            next = callers;
        }
    });
    read.map_err(Error::from)?;
    Ok(used)
}

impl StackColumns {
    fn add(
        &mut self,
        py: Python<'_>,
        selected: &SelectedProcess,
        used: &NumberMap<()>,
        (offset, outer_number): (u32, &mut u32),
    ) -> PyResult<()> {
        let dictionary = selected.process.recording.dictionary();
        let stacks = || dictionary.stacks().filter(|(stack, _)| used.get(*stack).is_some());
        let places = self.add_frames(py, selected, stacks().map(|(_, (_, frame))| frame))?;
        let mut depths: NumberMap<u32> = NumberMap::default();
        for (stack, (callers, frame)) in stacks() {
            let mut depth = depths.get(callers).copied().unwrap_or(0);
            let mut callers = if depth == 0 { 0 } else { offset.saturating_add(callers) };
            let (first, count) = places.get(frame).copied().unwrap_or_default();
            for place in first..first + count {
                let is_innermost = place + 1 == first + count;
                *outer_number = outer_number.saturating_add(u32::from(!is_innermost));
                let number = if is_innermost { offset.saturating_add(stack) } else { *outer_number };
                depth += 1;
                self.stack.push(number);
                self.callers.push(callers);
                self.depth.push(depth);
                self.frame.push(place);
                callers = number;
            }
            depths.insert(stack, depth);
        }
        Ok(())
    }

    /// Adds the functions of these frames of a process, outermost first, and returns the place of the first one of each frame,
    /// and how many there are.
    fn add_frames(
        &mut self,
        py: Python<'_>,
        selected: &SelectedProcess,
        frames: impl Iterator<Item = u32>,
    ) -> PyResult<NumberMap<(u32, u32)>> {
        let mut places: NumberMap<(u32, u32)> = NumberMap::default();
        let mut numbers = Vec::new();
        for frame in frames {
            if places.get(frame).is_none() {
                places.insert(frame, (0, 0));
                numbers.push(frame);
            }
        }
        let named = selected.process.frames(py, &numbers)?;
        for frame in numbers {
            let first = self.frames.len() as u32;
            match named.get(&frame).filter(|chain| !chain.is_empty()) {
                Some(chain) => self.frames.extend(chain.iter().rev().cloned().map(Some)),
                None => self.frames.push(None),
            }
            places.insert(frame, (first, self.frames.len() as u32 - first));
        }
        Ok(places)
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        let frames = &self.frames;
        let texts = |of: fn(&Frame) -> Option<&str>| -> Vec<Option<&str>> {
            frames.iter().map(|frame| frame.as_deref().and_then(of)).collect()
        };
        dict.set_item("names", texts(|frame| Some(frame.qualname.as_ref().unwrap_or(&frame.name))))?;
        dict.set_item("filenames", texts(|frame| frame.filename.as_deref().or(frame.module.as_deref())))?;
        dict.set_item("kinds", texts(|frame| Some(frame.kind.as_str())))?;
        let line = |frame: &Option<Arc<Frame>>| frame.as_ref().and_then(|frame| frame.position.line);
        dict.set_item("lines", frames.iter().map(line).collect::<Vec<_>>())?;
        let columns = [
            ("stack", Column::numbers(self.stack)),
            ("callers", Column::not_zero(self.callers)),
            ("depth", Column::numbers(self.depth)),
            ("frame", Column::numbers(self.frame)),
        ];
        for (name, column) in columns {
            dict.set_item(name, Bound::new(py, column)?)?;
        }
        Ok(dict)
    }
}
