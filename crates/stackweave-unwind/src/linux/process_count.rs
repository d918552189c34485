//! Counts threads in a critical section. A forked child does not inherit the count: it does not have the parent's
//! other threads, and must not wait for them.
//!
//! Async-signal-safe.

use core::sync::atomic::{AtomicU64, Ordering};

const PROCESS_SHIFT: u32 = 32;

/// The number of threads of this process inside. The upper half is the id of the process for which the lower half
/// counts.
#[derive(Debug)]
pub(crate) struct ProcessCount(AtomicU64);

impl ProcessCount {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Enters the section; [`ProcessCount::leave`] must follow.
    pub(crate) fn enter(&self) {
        self.update(|count| Some(count + 1));
    }

    /// Enters the section if no thread is inside. Returns whether it did.
    pub(crate) fn try_enter_alone(&self) -> bool {
        self.update(|count| (count == 0).then_some(1))
    }

    /// Leaves the section. In a child that was forked while its thread was inside, there is nothing to count.
    pub(crate) fn leave(&self) {
        self.update(|count| count.checked_sub(1));
    }

    /// Returns whether no thread of this process is inside.
    pub(crate) fn is_empty(&self) -> bool {
        count_here(self.0.load(Ordering::SeqCst)) == 0
    }

    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> bool {
        let own = u64::from(std::process::id()) << PROCESS_SHIFT;
        let changed = |state: u64| change(count_here(state)).map(|count| own | count);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed).is_ok()
    }
}

/// Returns the number of threads of this process in a state.
fn count_here(state: u64) -> u64 {
    let is_mine = state >> PROCESS_SHIFT == u64::from(std::process::id());
    if is_mine { u64::from(state as u32) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_another_process_are_not_counted() {
        let count = ProcessCount(AtomicU64::new((u64::from(std::process::id() + 1) << PROCESS_SHIFT) + 3));
        assert!(count.is_empty());
        count.leave();
        assert!(count.is_empty());
        count.enter();
        assert!(!count.is_empty() && !count.try_enter_alone());
        count.leave();
        assert!(count.is_empty() && count.try_enter_alone() && !count.try_enter_alone());
    }
}
