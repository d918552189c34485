//! `events()`: an iterator that reads events on demand.

use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use stackweave_recording::{TimeOrder, TimedEvent};

use super::event::PyEvent;
use super::named_process::OpenedProcess;
use super::{OpenedRecording, RecordingPart};
use crate::errors::Error;

/// The events of a recording in the order of time.
#[pyclass(frozen, module = "stackweave._native", name = "Events")]
#[derive(Debug)]
pub(crate) struct PyEvents {
    state: Mutex<EventReader>,
}

/// The number of events that are read each time the GIL is released.
const BATCH_SIZE: usize = 256;

#[derive(Debug)]
struct EventReader {
    order: TimeOrder,
    /// Events that were read, but not yet returned.
    read: VecDeque<PyEvent>,
    /// Subtracted from the times.
    base: i64,
    processes: Vec<Arc<OpenedProcess>>,
    thread: Option<u32>,
}

impl PyEvents {
    pub(super) fn new(opened: &OpenedRecording, chosen: Vec<Arc<OpenedProcess>>, selection: &RecordingPart) -> Self {
        let range = selection.range();
        let (order, base) = if let [process] = chosen.as_slice() {
            // On the clock of this process.
            let offset = opened.offset_of(&process.recording);
            let local = |ns: i64| u64::try_from(ns.saturating_sub(offset)).unwrap_or(0);
            let range = range.map(|range| local(range.start)..local(range.end));
            let threads = process.recording.dictionary().threads();
            let requested: Option<Vec<u32>> = selection
                .thread
                .map(|tid| threads.filter(|thread| thread.tid == tid).map(|thread| thread.number).collect());
            (process.recording.in_time_order(range, requested.as_deref()), offset.saturating_neg())
        } else {
            let moved = |ns: i64| ns.saturating_add(opened.base);
            (opened.recording.in_time_order(range.map(|range| moved(range.start)..moved(range.end))), opened.base)
        };
        Self {
            state: Mutex::new(EventReader {
                order,
                read: VecDeque::new(),
                base,
                processes: chosen,
                thread: selection.thread,
            }),
        }
    }
}

#[pymethods]
impl PyEvents {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyEvent>> {
        if let Some(event) = self.state().read.pop_front() {
            return Ok(Some(event));
        }
        py.detach(|| self.state().next())
    }
}

impl PyEvents {
    /// Locks the reader. The thread that holds the lock never waits for the GIL.
    fn state(&self) -> MutexGuard<'_, EventReader> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventReader {
    /// Reads a batch of events, and returns the first.
    fn next(&mut self) -> PyResult<Option<PyEvent>> {
        while self.read.len() < BATCH_SIZE {
            let Some(event) = self.order.next_event().map_err(Error::from)? else { break };
            let is_same = |process: &&Arc<OpenedProcess>| ptr::eq(process.recording.start(), event.process.start());
            let Some(process) = self.processes.iter().find(is_same) else { continue };
            if self.thread.is_none_or(|tid| is_on_thread(&event, tid)) {
                self.read.push_back(PyEvent::new(process, &event, self.base));
            }
        }
        Ok(self.read.pop_front())
    }
}

fn is_on_thread(event: &TimedEvent<'_>, tid: u32) -> bool {
    event.process.dictionary().thread(event.thread).is_some_and(|thread| thread.tid == tid)
}
