//! Native stack capture in nanoseconds per frame.
//!
//! [`capture`] fills a buffer with the return addresses of the calling thread's stack, innermost first, and
//! returns why it stopped. It reads the unwind tables of the modules (`.eh_frame`), so it needs neither frame
//! pointers nor symbols. It keeps what it learns per thread, so that a warm capture neither allocates nor locks,
//! and may run in a signal handler. It calls the kernel only where it is necessary: on a stack that is not the
//! thread's own, and in code without unwind tables.
//!
//! ```
//! use stackweave_unwind::{CodeAddress, StopReason, capture};
//!
//! let mut frames = [CodeAddress::default(); 64];
//! let captured = capture(&mut frames, 0);
//! assert_eq!(captured.stop, StopReason::EndOfStack);
//! for frame in &frames[..captured.len] {
//!     println!("{:#x}", frame.address());
//! }
//! ```
//!
//! | to | use |
//! |---|---|
//! | capture the stack here | [`capture`] |
//! | get each frame's stack pointer | [`capture_with_stack_pointers`] |
//! | detect that a stack was captured before | [`capture_mark`], [`write_last_stack`] |
//! | capture the stack that a signal interrupted | [`capture_from_context`] |
//! | walk through generated code | [`register_code`] |
//! | pay the start-up cost at a chosen time | [`prepare`] |
//! | get the modules of addresses | [`modules`] |
//! | get statistics of captures and caches | [`stats`] |
//! | store data per thread, in the layer above | [`ThreadMemory`] |
//! | step through the frames of another process | `stepping` |
//!
//! A thread remembers the stacks that it has captured. One of them is only compared with memory: every return
//! address, and every saved word that decides where a later frame lies. What changed is walked. [`capture_mark`]
//! does this without writing frames: its mark is the same for the same stack, so the layer above can keep what it
//! made of it.
//!
//! It never crashes the program: every read is inside the thread's stack, each frame must be above the previous
//! one, and anything that cannot be understood ends the walk with a [`StopReason`].
//!
//! Linux on x86-64. On other platforms everything compiles, and every capture is empty with
//! [`StopReason::UnsupportedPlatform`].

#![allow(clippy::inline_always, reason = "a capture is a few dozen nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod captured;
mod loader_locks;
mod stats;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported))))]
#[path = "unsupported.rs"]
mod platform;

use core::ffi::c_void;
use core::ptr::NonNull;

pub use captured::{Captured, StackMark};
pub use loader_locks::{LoaderLocks, MutexParts};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use platform::fuzzing;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
pub use platform::stepping;
pub use platform::{RegisteredCode, ThreadMemory, register_code};
pub use stackweave_core::{BuildId, CodeAddress, Module, ModuleList, StackPointer, StopReason};
pub use stats::{UnloadWatch, UnwindStats};

/// Captures the calling thread's stack into `frames`, innermost first.
///
/// The first frame is the function that calls `capture`, identified by the address to which it will return; `skip`
/// omits that many frames, beginning with it. The depth limit is the buffer's length: if there are more frames,
/// the stop reason is [`StopReason::DepthLimit`].
///
/// Once a thread is warm (it has captured similar stacks before), this neither allocates nor locks, and is
/// async-signal-safe.
#[inline(always)]
pub fn capture(frames: &mut [CodeAddress], skip: usize) -> Captured {
    platform::capture(frames, skip)
}

/// Captures as [`capture`] does, and also writes each frame's stack pointer. The depth limit is the length of the
/// shorter buffer.
#[inline(always)]
pub fn capture_with_stack_pointers(
    frames: &mut [CodeAddress],
    stack_pointers: &mut [StackPointer],
    skip: usize,
) -> Captured {
    platform::capture_with_stack_pointers(frames, stack_pointers, skip)
}

/// Captures as [`capture`] does, at most `limit` frames, but writes none: returns a mark that identifies the stack.
#[inline(always)]
pub fn capture_mark(limit: usize, skip: usize) -> (Captured, StackMark) {
    platform::capture_mark(limit, skip)
}

/// Writes frames of the stack with this mark, beginning with frame `skip`, and their stack pointers. Both buffers
/// have as many elements as frames were found after `skip`. Returns false if this thread has captured another stack
/// since, as in a signal handler.
#[inline(always)]
pub fn write_last_stack(
    mark: StackMark,
    frames: &mut [CodeAddress],
    stack_pointers: &mut [StackPointer],
    skip: usize,
) -> bool {
    platform::write_last_stack(mark, frames, stack_pointers, skip)
}

/// Captures the stack that a signal interrupted: the first frame is exactly the interrupted instruction, even
/// while it was changing its stack. Also writes stack pointers to `stack_pointers`, if given.
///
/// # Safety
/// `context` points to the `ucontext_t` that a signal handler received as its third argument. Its contents need
/// not be valid: implausible registers end the walk.
pub unsafe fn capture_from_context(
    context: *const c_void,
    frames: &mut [CodeAddress],
    stack_pointers: Option<&mut [StackPointer]>,
    skip: usize,
) -> Captured {
    // SAFETY: the caller keeps this function's contract, which is the same.
    unsafe { platform::capture_from_context(context, frames, stack_pointers, skip) }
}

/// Does now what the first capture of the process and of this thread would do: finds the loader's counters and
/// maps this thread's state. A host whose first capture would otherwise be in a signal handler calls this first.
pub fn prepare() {
    platform::prepare();
}

/// Returns the loaded modules, with their address ranges and files. Queries the loader, allocates, and is not for
/// signal handlers. If another thread keeps the loader's list locked for half a second, as in a callback of
/// `dl_iterate_phdr` that waits for the caller, returns the modules of the last call.
pub fn modules() -> ModuleList {
    platform::modules()
}

/// Returns the loader's own counter of all modules that it has loaded, which it changes before any code of a later
/// module can run. For volatile loads only; it exists forever. `None` if it was not found.
pub fn loads_counter() -> Option<NonNull<u64>> {
    platform::loads_counter()
}

/// Returns the loader's locks, if they were found, for code that other code may call while it holds one of them.
pub fn loader_locks() -> Option<LoaderLocks> {
    platform::loader_locks()
}

/// Returns the totals of all threads since the process began.
pub fn stats() -> UnwindStats {
    platform::stats()
}
