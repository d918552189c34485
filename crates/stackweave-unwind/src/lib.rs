//! Native stack capture in nanoseconds per frame.
//!
//! [`capture`] fills a buffer with the return addresses of the calling thread's stack, innermost first,
//! and says why it stopped. It reads the unwind tables that every module carries (`.eh_frame`), so it
//! needs neither frame pointers nor symbols, and it keeps what it learns per thread, so that a warm
//! capture neither allocates nor locks, and may run in a signal handler. It calls the kernel only where it
//! can't do without: on a stack that is not the thread's own, and in code without unwind tables.
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
//! | know where each frame's stack begins | [`capture_with_stack_pointers`] |
//! | capture what a signal interrupted | [`capture_from_context`] |
//! | walk through generated code | [`register_code`] |
//! | pay the start-up cost at a chosen time | [`prepare`] |
//! | know the modules that addresses lie in | [`modules`] |
//! | see how well the caches do | [`stats`] |
//! | keep something per thread, on top of this | [`ThreadMemory`] |
//! | step through the frames of another process | `stepping` |
//!
//! It never fails the program it looks at: every read is inside the thread's stack, a frame must lie
//! above the one before it, and what can't be understood ends the walk with a [`StopReason`].
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

pub use captured::{Captured, LastStackMark};
pub use loader_locks::{LoaderLocks, MutexParts};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use platform::fuzzing;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
pub use platform::stepping;
pub use platform::{RegisteredCode, ThreadMemory, register_code};
pub use stackweave_core::{BuildId, CodeAddress, Module, ModuleList, StackPointer, StopReason};
pub use stats::{Stats, UnloadWatch};

/// Captures the calling thread's stack into `frames`, innermost first.
///
/// The first frame is the function that calls `capture`, known by the address it will return to;
/// `skip` leaves out that many frames from there on. The depth limit is the buffer's length: when
/// there are more frames than that, the result says [`StopReason::DepthLimit`].
///
/// Once a thread is warm (its first captures of a given code are behind it), this neither allocates nor
/// locks, and is async-signal-safe.
#[inline(always)]
pub fn capture(frames: &mut [CodeAddress], skip: usize) -> Captured {
    platform::capture(frames, skip)
}

/// As [`capture`], and writes each frame's stack pointer too. The depth limit is the length of the
/// shorter buffer.
#[inline(always)]
pub fn capture_with_stack_pointers(
    frames: &mut [CodeAddress],
    stack_pointers: &mut [StackPointer],
    skip: usize,
) -> Captured {
    platform::capture_with_stack_pointers(frames, stack_pointers, skip)
}

/// Which stack this thread has captured last, to tell whether the next is the same. None in a signal handler that has
/// interrupted a capture, and before the first.
#[inline(always)]
pub fn last_stack() -> Option<LastStackMark> {
    platform::last_stack()
}

/// Captures the stack that a signal interrupted: the first frame is the interrupted instruction,
/// exactly, whatever it was doing to its stack. With `stack_pointers`, their stack pointers too.
///
/// # Safety
/// `context` points to a `ucontext_t` as a signal handler gets it as its third argument. What it
/// says need not be true: registers that lead nowhere end the walk.
pub unsafe fn capture_from_context(
    context: *const c_void,
    frames: &mut [CodeAddress],
    stack_pointers: Option<&mut [StackPointer]>,
    skip: usize,
) -> Captured {
    // SAFETY: passed on to the caller.
    unsafe { platform::capture_from_context(context, frames, stack_pointers, skip) }
}

/// Pays now what the first capture of the process and of this thread would pay: finds the loader's
/// counters and maps this thread's state. A host whose first capture would otherwise be in a signal
/// handler calls this first.
pub fn prepare() {
    platform::prepare();
}

/// The modules that are loaded now: what [`CodeAddress`]es lie in, and which files they came from. Asks the
/// loader, allocates, and is not for signal handlers. If another thread keeps the loader's list locked for half a second, as in a
/// callback of `dl_iterate_phdr` that waits for the caller, the modules are those that were known before.
pub fn modules() -> ModuleList {
    platform::modules()
}

/// The loader's own counter of the modules that it ever loaded, which it changes before any code of a later one can run. For
/// reading only, by volatile loads; it never goes away. None where it was not found.
pub fn loads_counter() -> Option<NonNull<u64>> {
    platform::loads_counter()
}

/// Where the loader's locks are, if they were found. For those who are called by others' code, and may be called with one of them
/// held.
pub fn loader_locks() -> Option<LoaderLocks> {
    platform::loader_locks()
}

/// Totals over all threads since the process began.
pub fn stats() -> Stats {
    platform::stats()
}
