//! The threads of a recording, for those who ask while it goes on and after.

use std::sync::{Arc, Mutex, PoisonError};

/// A thread that has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadOf {
    /// Its number in the recording, as observers are told it.
    pub number: u32,
    /// The number that the kernel had for it.
    pub tid: u32,
    /// What it was last called.
    pub name: String,
}

/// All of a recording, in the order of their numbers. Nothing is allocated while it is locked by who asks: who records an
/// allocation may wait for the writer.
#[derive(Debug, Default)]
pub(super) struct KnownThreads(Mutex<Arc<Vec<ThreadOf>>>);

impl KnownThreads {
    pub(super) fn all(&self) -> Arc<Vec<ThreadOf>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a thread, or gives it another name. The writer's.
    pub(super) fn tell(&self, number: u32, tid: u32, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = Arc::make_mut(&mut all);
        let thread = ThreadOf { number, tid, name: name.to_owned() };
        match all.binary_search_by_key(&number, |thread| thread.number) {
            Ok(place) => all[place] = thread,
            Err(place) => all.insert(place, thread),
        }
    }
}
