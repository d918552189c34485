//! Allocations that fail.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::StackId;
use stackweave_recording::events::Allocator;

use crate::state::ActiveRecording;

/// The label of a failed allocation in a recording.
pub(crate) const OUT_OF_MEMORY: &str = "out of memory";

/// The least time between two recorded failures: some seconds in ticks of any clock (nanoseconds, or cycles of a
/// processor of a few GHz). A program that retries in a loop is not recorded each time.
const PAUSE: u64 = 2_000_000_000;

static FAILED: AtomicU64 = AtomicU64::new(0);
/// The time at which the last failure was recorded, plus one; 0: never.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns how many allocations have failed since the recording began.
pub(crate) fn count() -> u64 {
    FAILED.load(Ordering::Relaxed)
}

/// Resets the counts when a recording begins.
pub(crate) fn reset() {
    FAILED.store(0, Ordering::Relaxed);
    LAST.store(0, Ordering::Relaxed);
}

/// Counts a failure, and records it unless one was recorded shortly before. Neither allocates nor locks.
pub(crate) fn record(active: &ActiveRecording, allocator: Allocator, size: usize, stack: Option<StackId>) {
    FAILED.fetch_add(1, Ordering::Relaxed);
    let (now, last) = (active.recorder.ticks_now() + 1, LAST.load(Ordering::Relaxed));
    let is_due = last == 0 || now.saturating_sub(last) > PAUSE;
    if !is_due || LAST.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let Some(frame) = active.out_of_memory else { return };
    let mut text = FixedText { bytes: [0; 96], len: 0 };
    if write!(text, r#"{{"size": {size}, "allocator": "{}"}}"#, allocator.as_str()).is_ok() {
        active.recorder.instant_with(frame, stack, &text.bytes[..text.len]);
    }
}

/// A text of limited length that allocates nothing.
struct FixedText {
    bytes: [u8; 96],
    len: usize,
}

impl Write for FixedText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let target = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(std::fmt::Error)?;
        target.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}
