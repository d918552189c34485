//! Named files and folders that are not complete: they are removed if a signal ends the process.

use std::collections::BTreeMap;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::created::Created;

static UNFINISHED: Mutex<BTreeMap<u64, Vec<Created>>> = Mutex::new(BTreeMap::new());

/// The unfinished files of one output, until it is dropped.
#[derive(Debug)]
pub(super) struct UnfinishedFiles(u64);

impl UnfinishedFiles {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn add(&self, created: Created) {
        all().entry(self.0).or_default().push(created);
    }

    /// Creates something and adds it in one step, so that [`discard_unfinished`] cannot miss it.
    pub(super) fn create<T>(&self, create: impl FnOnce() -> io::Result<(T, Created)>) -> io::Result<T> {
        let mut all = all();
        let (made, created) = create()?;
        all.entry(self.0).or_default().push(created);
        Ok(made)
    }

    /// Removes the added files, the last first: a folder is added before its content.
    pub(super) fn discard(&self) {
        discard(&all().remove(&self.0).unwrap_or_default());
    }
}

impl Drop for UnfinishedFiles {
    fn drop(&mut self) {
        all().remove(&self.0);
    }
}

/// Removes all unfinished exports and merges of this process, for a command that a signal ends. Afterwards, other
/// threads that create a file in an unfinished folder wait for the end of the process.
pub fn discard_unfinished() {
    let all = ManuallyDrop::new(all());
    for created in all.values() {
        discard(created);
    }
}

fn discard(created: &[Created]) {
    for each in created.iter().rev() {
        each.discard();
    }
}

fn all() -> MutexGuard<'static, BTreeMap<u64, Vec<Created>>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
