//! Guards that make lookups use only the calling thread.

use std::sync::atomic::{AtomicUsize, Ordering};

static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// While a guard exists, no symbolizer of this process starts threads: for recorders that would observe them.
#[derive(Debug)]
#[must_use = "threads are started again when it is dropped"]
pub struct WithoutThreads(());

impl WithoutThreads {
    /// Creates a guard.
    pub fn begin() -> Self {
        GUARDS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    pub(crate) fn is_active() -> bool {
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
    fn the_last_guard_allows_threads_again() {
        let first = WithoutThreads::begin();
        let second = WithoutThreads::begin();
        drop(first);
        assert!(WithoutThreads::is_active());
        drop(second);
        assert!(!WithoutThreads::is_active());
    }
}
