//! Where events of a thread may be missing.
//!
//! Hot file: [`gaps`] is one load.

use std::sync::atomic::{AtomicU64, Ordering};

static GAPS: AtomicU64 = AtomicU64::new(1);

/// A number that changes whenever events of a thread may be missing in some recording of this process, before the thread's next
/// one: a fork, a pause, buffers or a disk that were full. Who keeps what is open compares it, and tells again
/// ([`Role::Open`](stackweave_core::Role::Open)).
#[inline]
pub fn gaps() -> u64 {
    GAPS.load(Ordering::Relaxed)
}

/// Events may be missing. Async-signal-safe.
pub(super) fn add() {
    GAPS.fetch_add(1, Ordering::Relaxed);
}
