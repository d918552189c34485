//! Where all threads are, written down while everything hangs.

use core::ffi::{c_int, c_void};

use crate::dump::{CantDump, DumpOptions, Dumped};
use crate::platform;

/// Chooses the signal that threads are asked with, a real-time signal without a handler, and installs one for it. To be
/// called before the first dump, and not in a signal handler; again is harmless, and needed only after
/// [`CantDump::SignalTaken`].
pub fn prepare_dumps() -> Result<(), CantDump> {
    platform::prepare_dumps()
}

/// As [`prepare_dumps`], and from then on other processes of the same user can ask this one for its stacks, as `stackweave
/// stacks` does where ptrace is not allowed: the handler writes them into a file in memory that the other process has made. A
/// mapping with a name tells others of it (`question.rs`). Forked children answer as well, until they call `exec`.
pub fn prepare_answers() -> Result<(), CantDump> {
    platform::prepare_answers()
}

/// The signal that threads are asked with, if its handler is still ours. Async-signal-safe.
pub fn dump_signal() -> Result<c_int, CantDump> {
    platform::signal()
}

/// Writes the woven stacks of all threads of the process to a file descriptor, as text, most recent call first.
///
/// Needs no interpreter's lock, allocates nothing and takes no lock: it works while the GIL is stuck, or the allocator's or
/// the loader's lock is held for good. Each thread is sent a signal, and captures itself in the handler; threads that
/// don't answer in time are named with the reason. Threads that wait in a system call see it go on, or end with `EINTR`
/// where the kernel never restarts it (`nanosleep`, `poll`, `epoll_wait`).
///
/// In a signal handler call [`dump_all_threads_from_context`] instead. One dump is written at a time: a second one says
/// [`CantDump::Busy`]. Whatever went wrong is written too.
pub fn dump_all_threads(fd: c_int, options: &DumpOptions) -> Result<Dumped, CantDump> {
    platform::dump_all_threads(fd, options)
}

/// The same from a signal handler: async-signal-safe, and the calling thread's stack is what the signal interrupted. The
/// handler needs a stack of some 20 KB.
///
/// # Safety
/// As for [`capture_from_context`](crate::capture_from_context).
pub unsafe fn dump_all_threads_from_context(
    fd: c_int,
    context: *const c_void,
    options: &DumpOptions,
) -> Result<Dumped, CantDump> {
    // SAFETY: passed on to the caller.
    unsafe { platform::dump_all_threads_from_context(fd, context, options) }
}
