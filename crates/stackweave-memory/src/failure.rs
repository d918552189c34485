//! Allocations that fail.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::StackId;
use stackweave_recording::events::Allocator;

use crate::state::Active;

/// What an allocation that fails is called in a recording.
pub(crate) const OUT_OF_MEMORY: &str = "out of memory";

/// Some seconds in ticks of any clock: nanoseconds, or cycles of a processor of a few GHz. A program that goes on asking is
/// not told of each time.
const PAUSE: u64 = 2_000_000_000;

static FAILED: AtomicU64 = AtomicU64::new(0);
/// When the last was recorded, plus one; 0: none was.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How many allocations have failed since the recording began.
pub(crate) fn count() -> u64 {
    FAILED.load(Ordering::Relaxed)
}

/// A recording begins.
pub(crate) fn reset() {
    FAILED.store(0, Ordering::Relaxed);
    LAST.store(0, Ordering::Relaxed);
}

/// Counts a failure, and records it if none was for a while. Neither allocates nor locks.
pub(crate) fn record(active: &Active, allocator: Allocator, size: usize, stack: Option<StackId>) {
    FAILED.fetch_add(1, Ordering::Relaxed);
    let (now, last) = (active.recorder.ticks_now() + 1, LAST.load(Ordering::Relaxed));
    let is_due = last == 0 || now.saturating_sub(last) > PAUSE;
    if !is_due || LAST.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let Some(frame) = active.out_of_memory else { return };
    let mut text = Text { bytes: [0; 96], len: 0 };
    if write!(text, r#"{{"size": {size}, "allocator": "{}"}}"#, allocator.as_str()).is_ok() {
        active.recorder.instant_with(frame, stack, &text.bytes[..text.len]);
    }
}

/// Text without memory of its own.
struct Text {
    bytes: [u8; 96],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}
