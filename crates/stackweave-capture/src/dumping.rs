//! Writes the stacks of all threads, even while the process hangs.

use core::ffi::{c_int, c_void};

use crate::dump::{DumpError, DumpOptions, DumpSummary};
use crate::platform;

/// Chooses the signal for dumps, a real-time signal without a handler, and installs its handler. To be called
/// before the first dump, and not in a signal handler. Calling it again is harmless, and only needed after
/// [`DumpError::SignalReplaced`].
pub fn prepare_dumps() -> Result<(), DumpError> {
    platform::prepare_dumps()
}

/// Prepares dumps as [`prepare_dumps`] does, and allows other processes of the same user to query this one for its
/// stacks, as `stackweave stacks` does where ptrace is not allowed: the handler writes them to a memory file that
/// the other process has created. A named mapping advertises this to other processes (`stack_query.rs`). Forked
/// children reply as well, until they call `exec`.
pub fn prepare_answers() -> Result<(), DumpError> {
    platform::prepare_answers()
}

/// Returns the signal for dumps, if its handler is still installed. Async-signal-safe.
pub fn dump_signal() -> Result<c_int, DumpError> {
    platform::signal()
}

/// Writes the woven stacks of all threads of the process to a file descriptor, as text, most recent call first.
///
/// Needs no interpreter's lock, allocates nothing and takes no lock: it works while the GIL is stuck, or the lock
/// of the allocator or the loader is held forever. Each thread is sent a signal, and captures itself in the
/// handler; threads that do not reply in time are listed with the reason. The system calls in which threads wait
/// continue, or end with `EINTR` where the kernel never restarts them (`nanosleep`, `poll`, `epoll_wait`).
///
/// In a signal handler, call [`dump_all_threads_from_context`] instead. One dump is written at a time: a
/// concurrent one fails with [`DumpError::Busy`]. Errors are also written to the descriptor.
pub fn dump_all_threads(fd: c_int, options: &DumpOptions) -> Result<DumpSummary, DumpError> {
    platform::dump_all_threads(fd, options)
}

/// Does the same from a signal handler: async-signal-safe, and the calling thread's stack is the interrupted one.
/// The handler needs some 20 KB of stack.
///
/// # Safety
/// The same as for [`capture_from_context`](crate::capture_from_context).
pub unsafe fn dump_all_threads_from_context(
    fd: c_int,
    context: *const c_void,
    options: &DumpOptions,
) -> Result<DumpSummary, DumpError> {
    // SAFETY: the caller keeps this function's contract, which is the same.
    unsafe { platform::dump_all_threads_from_context(fd, context, options) }
}
