//! The number of gaps in recordings, where events of a thread may be missing.
//!
//! Hot file: [`gap_count`] is one load.

use std::sync::atomic::{AtomicU64, Ordering};

static GAPS: AtomicU64 = AtomicU64::new(1);

/// Returns a number that changes whenever events of a thread may be missing in a recording of this process, before the thread's next
/// event: after a fork, a pause, a full buffer or a full disk. Recorders with open spans compare it, and record these spans again
/// ([`Role::Open`](stackweave_core::Role::Open)).
#[inline]
pub fn gap_count() -> u64 {
    GAPS.load(Ordering::Relaxed)
}

/// Notes that events may be missing. Async-signal-safe.
pub(super) fn add() {
    GAPS.fetch_add(1, Ordering::Relaxed);
}
