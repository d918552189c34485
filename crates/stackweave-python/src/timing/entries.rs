//! The times that a phase has been entered and not left yet: inside itself, and on several threads at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_recording::timing::Token;

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

/// The oldest first. One is had most of the time, and lies here.
#[derive(Debug, Default)]
struct Stack {
    first: Option<Entry>,
    more: Vec<Entry>,
}

impl Stack {
    fn push(&mut self, entry: Entry) {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some(entry);
        } else {
            self.more.push(entry);
        }
    }

    /// The last one for which this is true.
    fn find(&mut self, is_it: impl Fn(&Entry) -> bool) -> Option<&mut Entry> {
        self.more.iter_mut().rfind(|entry| is_it(entry)).or_else(|| self.first.as_mut().filter(|entry| is_it(entry)))
    }

    fn take(&mut self, is_it: impl Fn(&Entry) -> bool) -> Option<Entry> {
        match self.more.iter().rposition(&is_it) {
            Some(place) => Some(self.more.remove(place)),
            None => self.first.take_if(|entry| is_it(entry)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Entries(Mutex<Stack>);

impl Entries {
    /// No code of Python's runs while this is held.
    fn locked(&self) -> MutexGuard<'_, Stack> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, entry: Entry) {
        self.locked().push(entry);
    }

    /// The last one of the calling thread, or of another one if there is none of it.
    pub(super) fn take(&self) -> Option<Entry> {
        let (mut entries, here) = (self.locked(), this_thread());
        entries.take(|entry| entry.thread == here).or_else(|| entries.take(|_| true))
    }

    /// The notes of the one that would be taken now.
    pub(super) fn notes(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        let fresh = PyDict::new(py).unbind();
        let (mut entries, here) = (self.locked(), this_thread());
        let is_here = |entry: &Entry| entry.thread == here;
        let any_here = entries.find(is_here).is_some();
        let entry = entries.find(|entry| !any_here || is_here(entry))?;
        Some(entry.notes.get_or_insert(fresh).clone_ref(py))
    }
}

/// A number that no two threads have that run at the same time.
fn this_thread() -> u64 {
    // SAFETY: may be called at any time.
    unsafe { ffi::PyThread_get_thread_ident() }
}
