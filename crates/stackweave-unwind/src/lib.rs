//! Native stack capture in nanoseconds per frame.
pub use stackweave_core::{CodeAddress, StackPointer, StopReason};

/// The result of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// How many frames were written.
    pub len: usize,
    /// Why the walk ended.
    pub stop: StopReason,
}

/// Captures the calling thread's native stack into `frames`, innermost first.
///
/// The first frame is the caller of `capture` itself, unless `skip` leaves it out. The depth limit is the buffer's length.
#[inline(always)]
pub fn capture(frames: &mut [CodeAddress], skip: usize) -> Captured {
    let _ = (frames, skip);
    Captured { len: 0, stop: StopReason::UnsupportedPlatform }
}

/// As [`capture`], and writes each frame's stack pointer to `stack_pointers`. The depth limit is the shorter buffer's length.
#[inline(always)]
pub fn capture_with_stack_pointers(frames: &mut [CodeAddress], stack_pointers: &mut [StackPointer], skip: usize) -> Captured {
    let _ = (frames, stack_pointers, skip);
    Captured { len: 0, stop: StopReason::UnsupportedPlatform }
}

/// Captures the stack that a signal interrupted; the first frame is the interrupted instruction, exactly.
///
/// # Safety
/// `context` is the third argument of the signal handler that is running on this thread.
pub unsafe fn capture_from_context(context: *const core::ffi::c_void, frames: &mut [CodeAddress], skip: usize) -> Captured {
    let _ = (context, frames, skip);
    Captured { len: 0, stop: StopReason::UnsupportedPlatform }
}

/// Totals over all threads since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Frames whose rule was found in a cache, or that were replayed.
    pub hits: u64,
    /// Frames whose rule had to be read from unwind tables.
    pub misses: u64,
    /// Frames that the compact rule could not express (handled by the general evaluator).
    pub unsupported: u64,
    /// Times a thread dropped its rules because a library was unloaded.
    pub resets: u64,
    /// Captures by why they ended, indexed by `StopReason as usize`.
    pub stops: [u64; StopReason::ALL.len()],
}

/// Totals over all threads.
pub fn stats() -> Stats { Stats::default() }
