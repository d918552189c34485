//! The open entries of a phase object, which can be entered recursively and on several threads at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_recording::timing::Token;

/// An open entry.
#[derive(Debug)]
pub(super) struct PhaseEntry {
    thread: u64,
    /// The phase that was begun; `None` if it is not recorded.
    pub(super) token: Option<Token>,
    /// The number of spans that were open when the phase began, if the recording was paused before.
    pub(super) spans: usize,
    /// The attributes for the end event.
    pub(super) notes: Option<Py<PyDict>>,
}

impl PhaseEntry {
    /// Creates an entry of the calling thread.
    pub(super) fn new(token: Option<Token>, spans: usize) -> Self {
        Self { thread: this_thread(), token, spans, notes: None }
    }
}

/// The entries, oldest first. Usually there is only one, which needs no allocation.
#[derive(Debug, Default)]
struct EntryStack {
    first: Option<PhaseEntry>,
    more: Vec<PhaseEntry>,
}

impl EntryStack {
    fn push(&mut self, entry: PhaseEntry) {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some(entry);
        } else {
            self.more.push(entry);
        }
    }

    /// Returns the last entry that matches.
    fn find(&mut self, is_match: impl Fn(&PhaseEntry) -> bool) -> Option<&mut PhaseEntry> {
        self.more
            .iter_mut()
            .rfind(|entry| is_match(entry))
            .or_else(|| self.first.as_mut().filter(|entry| is_match(entry)))
    }

    /// Removes the last entry that matches.
    fn take(&mut self, is_match: impl Fn(&PhaseEntry) -> bool) -> Option<PhaseEntry> {
        match self.more.iter().rposition(&is_match) {
            Some(index) => Some(self.more.remove(index)),
            None => self.first.take_if(|entry| is_match(entry)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct PhaseEntries(Mutex<EntryStack>);

impl PhaseEntries {
    /// Locks the entries. No Python code runs while they are locked.
    fn locked(&self) -> MutexGuard<'_, EntryStack> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, entry: PhaseEntry) {
        self.locked().push(entry);
    }

    /// Removes the last entry of the calling thread, or of another thread if the calling one has none.
    pub(super) fn take(&self) -> Option<PhaseEntry> {
        let (mut entries, here) = (self.locked(), this_thread());
        entries.take(|entry| entry.thread == here).or_else(|| entries.take(|_| true))
    }

    /// Returns the notes of the entry that [`PhaseEntries::take`] would remove.
    pub(super) fn notes(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        let fresh = PyDict::new(py).unbind();
        let (mut entries, here) = (self.locked(), this_thread());
        let is_here = |entry: &PhaseEntry| entry.thread == here;
        let any_here = entries.find(is_here).is_some();
        let entry = entries.find(|entry| !any_here || is_here(entry))?;
        Some(entry.notes.get_or_insert(fresh).clone_ref(py))
    }
}

/// Returns the id of the calling thread, which is unique among running threads.
fn this_thread() -> u64 {
    // SAFETY: may be called at any time.
    unsafe { ffi::PyThread_get_thread_ident() }
}
