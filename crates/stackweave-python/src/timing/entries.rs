//! The times that a phase has been entered and not left yet: inside itself, and on several threads at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_timing::Token;

/// One of them.
#[derive(Debug)]
pub(super) struct Entry {
    thread: u64,
    /// What was begun; `None` if nothing is recorded.
    pub(super) begun: Option<Token>,
    /// How many spans were open while the recording was paused.
    pub(super) spans: usize,
    /// What is to be said at the end.
    pub(super) notes: Option<Py<PyDict>>,
}

impl Entry {
    /// On the calling thread.
    pub(super) fn new(begun: Option<Token>, spans: usize) -> Self {
        Self { thread: this_thread(), begun, spans, notes: None }
    }
}

#[derive(Debug, Default)]
pub(super) struct Entries(Mutex<Vec<Entry>>);

impl Entries {
    /// No code of Python's runs while this is held.
    fn locked(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, entry: Entry) {
        self.locked().push(entry);
    }

    /// The last one of the calling thread.
    pub(super) fn take(&self) -> Option<Entry> {
        let (mut entries, here) = (self.locked(), this_thread());
        let place = entries.iter().rposition(|entry| entry.thread == here)?;
        Some(entries.remove(place))
    }

    /// The last one of another thread, if there is one.
    pub(super) fn take_from_another_thread(&self) -> Option<Entry> {
        self.locked().pop()
    }

    /// The notes of the last one, of the calling thread if there is any of it.
    pub(super) fn notes(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        let fresh = PyDict::new(py).unbind();
        let (mut entries, here) = (self.locked(), this_thread());
        let place = entries.iter().rposition(|entry| entry.thread == here);
        let place = place.or_else(|| entries.len().checked_sub(1))?;
        let entry = entries.get_mut(place)?;
        Some(entry.notes.get_or_insert(fresh).clone_ref(py))
    }
}

/// A number that no two threads have that run at the same time.
fn this_thread() -> u64 {
    // SAFETY: may be called at any time.
    unsafe { ffi::PyThread_get_thread_ident() }
}
