//! `thread_stacks()`: the stacks of all Python threads.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_capture::{Stop, intern};
use stackweave_core::{RawFrame, SourceStop};
use stackweave_cpython::{PythonSource, ThreadStatePointer};

use crate::capture_functions::captured;
use crate::keywords::EVERYTHING;
use crate::python_source;
use crate::traceback_object::of_stack;

/// The number of frames of a thread that fit into the first buffer, and into the largest one.
const FIRST_CAPACITY: usize = 256;
const MAX_CAPACITY: usize = 1 << 16;

/// Returns the stacks of all Python threads, by threading.get_ident().
///
/// The stack of the calling thread is woven. The stacks of other threads have only Python frames, because only a thread itself
/// can walk its native stack.
///
/// >>> import threading
/// >>> stackweave.thread_stacks()[threading.get_ident()].frames[0].name
/// '<module>'
#[pyfunction]
pub(crate) fn thread_stacks(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stacks = PyDict::new(py);
    // SAFETY: may be called at any time.
    let own: u64 = unsafe { ffi::PyThread_get_thread_ident() };
    if let Some(source) = python_source::source() {
        for (thread, frames, stop) in others(source, own) {
            stacks.set_item(thread, of_stack(py, intern(&frames), stop)?)?;
        }
    }
    let capture = captured(&EVERYTHING)?;
    stacks.set_item(own, of_stack(py, capture.stack, capture.stop())?)?;
    Ok(stacks)
}

type RawThreadStack = (u64, Vec<RawFrame>, Option<Stop>);

/// Reads the Python stacks of the other threads, without releasing the GIL in between.
fn others(source: &PythonSource, own: u64) -> Vec<RawThreadStack> {
    let states = source.thread_states().into_iter().filter(|(thread, _)| *thread != own);
    states.map(|(thread, state)| stack_of(source, thread, state)).collect()
}

fn stack_of(source: &PythonSource, thread: u64, state: ThreadStatePointer) -> RawThreadStack {
    let mut frames = vec![RawFrame::default(); FIRST_CAPACITY];
    loop {
        // SAFETY: the GIL has been held since the states were listed.
        let walked = unsafe { source.walk_thread(state, &mut frames) };
        if walked.stop == SourceStop::DepthLimit && frames.len() < MAX_CAPACITY {
            frames.resize(frames.len() * 4, RawFrame::default());
            continue;
        }
        frames.truncate(walked.len);
        let stop = (walked.stop != SourceStop::EndOfStack).then_some(Stop::Source(walked.stop));
        return (thread, frames, stop);
    }
}
