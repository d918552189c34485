//! Times at which names are looked up by the calling thread alone.

use std::sync::atomic::{AtomicUsize, Ordering};

static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// While one of them lives, no symbolizer of this process starts threads: for who watches the process, and would see them.
#[derive(Debug)]
#[must_use = "threads are started again when it is dropped"]
pub struct WithoutThreads(());

impl WithoutThreads {
    /// From now on.
    pub fn begin() -> Self {
        GUARDS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    pub(crate) fn is_asked_for() -> bool {
        GUARDS.load(Ordering::Relaxed) > 0
    }
}

impl Drop for WithoutThreads {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_guard_ends_it() {
        let first = WithoutThreads::begin();
        let second = WithoutThreads::begin();
        drop(first);
        assert!(WithoutThreads::is_asked_for());
        drop(second);
        assert!(!WithoutThreads::is_asked_for());
    }
}
