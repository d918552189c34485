//! The threads of a recording, for queries during and after it.

use std::sync::{Arc, Mutex, PoisonError};

/// A thread that has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its number in the recording, which observers receive.
    pub number: u32,
    /// Its thread id.
    pub tid: u32,
    /// Its last name.
    pub name: String,
}

/// The threads of a recording, in the order of their numbers. A reader allocates nothing under the lock: a thread that records an
/// allocation may wait for the writer, which takes the lock.
#[derive(Debug, Default)]
pub(super) struct KnownThreads(Mutex<Arc<Vec<ThreadInfo>>>);

impl KnownThreads {
    pub(super) fn all(&self) -> Arc<Vec<ThreadInfo>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a thread, or changes its name. Only the writer calls this.
    pub(super) fn set(&self, number: u32, tid: u32, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = Arc::make_mut(&mut all);
        let thread = ThreadInfo { number, tid, name: name.to_owned() };
        match all.binary_search_by_key(&number, |thread| thread.number) {
            Ok(index) => all[index] = thread,
            Err(index) => all.insert(index, thread),
        }
    }
}
