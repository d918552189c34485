//! Statistics of captures.

use crate::boundary::{CallError, call};
use crate::python;
use crate::sized_struct::{self, SizedStruct};
use crate::status::stackweave_status;

/// Totals over all threads since the process began. Set `size` before the call.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct stackweave_stats {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// Captured stacks.
    pub captures: u64,
    /// Captures whose walk of the native frames ended early.
    pub incomplete_native: u64,
    /// Captures whose walk of an interpreter's frames ended early.
    pub incomplete_source: u64,
    /// Distinct stacks, including those that are only the callers of others.
    pub stacks: u64,
    /// Captures that failed because there was no memory or no number left for a new stack.
    pub refused: u64,
    /// Bytes of address space for all stacks.
    pub stack_bytes: u64,
    /// Native frames whose unwind rule was cached.
    pub native_hits: u64,
    /// Native frames whose unwind rule was read from the unwind tables.
    pub native_misses: u64,
    /// Native frames that needed the general evaluator.
    pub native_unsupported: u64,
    /// The number of times that a thread dropped its cached rules because a library was unloaded.
    pub native_resets: u64,
    /// Distinct Python code objects.
    pub python_codes: u64,
    /// Bytes of the data that is kept of them.
    pub python_code_bytes: u64,
    /// Whether Python is enabled.
    pub python_is_enabled: bool,
    /// Whether Python frames are read directly from memory, without the GIL.
    pub python_is_direct: bool,
}

// SAFETY: the structure has only numbers and flags, and the size comes first.
unsafe impl SizedStruct for stackweave_stats {
    const MIN_SIZE: usize = size_of::<Self>();
}

fn gather() -> stackweave_stats {
    use stackweave_capture::{SourceStop, StopReason};
    let (captures, native) = (stackweave_capture::stats(), stackweave_unwind::stats());
    let is_early = |reason: &&SourceStop| {
        !matches!(reason, SourceStop::EndOfStack | SourceStop::NoThreadState | SourceStop::NotInitialized)
    };
    let early_native = StopReason::ALL.iter().filter(|reason| **reason != StopReason::EndOfStack);
    let stats = stackweave_stats {
        captures: captures.captures,
        incomplete_native: early_native.map(|reason| native.stopped_by(*reason)).sum(),
        incomplete_source: SourceStop::ALL.iter().filter(is_early).map(|reason| captures.stopped_by(*reason)).sum(),
        stacks: captures.stacks.stacks.into(),
        refused: captures.stacks.refused,
        stack_bytes: (captures.stacks.tree_bytes + captures.stacks.index_bytes) as u64,
        native_hits: native.hits,
        native_misses: native.misses,
        native_unsupported: native.unsupported,
        native_resets: native.resets,
        ..stackweave_stats::default()
    };
    python::add_to(stats)
}

/// Writes the totals to `stats`, up to its size. Takes no lock; not for signal handlers.
///
/// # Safety
/// `stats` is null, or points to a structure whose size is correct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_get_stats(stats: *mut stackweave_stats) -> stackweave_status {
    call(|| {
        let bad = || CallError::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, "stats is null or its size is not set");
        // SAFETY: guaranteed by the caller.
        unsafe { sized_struct::write(stats, &gather()) }.then_some(()).ok_or_else(bad)
    })
}
