//! What hooks and threads' blocks ask of the system.
//!
//! Each is async-signal-safe.

use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Where the calling thread's `errno` is; it stays there.
pub(crate) fn errno_place() -> *mut i32 {
    // SAFETY: has no conditions.
    unsafe { libc::__errno_location() }
}

/// The calling thread's number in the kernel.
pub(crate) fn thread_number() -> u32 {
    // SAFETY: has no conditions.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Whether no thread of this process has this number.
pub(crate) fn is_gone(tid: u32) -> bool {
    let errno = errno_place();
    // SAFETY: signal 0 is none: only whether it could be sent is found out. The thread's own `errno`.
    unsafe {
        let before = *errno;
        let failed = libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) != 0;
        let is_gone = failed && *errno == libc::ESRCH;
        *errno = before;
        is_gone
    }
}

/// New memory of zeros, straight from the kernel.
pub(crate) fn map_zeros(bytes: usize) -> Option<NonNull<u8>> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: maps new memory.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { None } else { NonNull::new(mapped.cast()) }
}

/// Has forked children find zeros in these whole pages. A kernel before 4.14 does not know how: then they find what the parent
/// had, and their recording begins at their first event.
pub(crate) fn empty_in_children(start: *const u8, bytes: usize) {
    // SAFETY: the pages are a static's own, of anonymous memory; this process does not see a difference.
    unsafe { libc::madvise(start.cast_mut().cast(), bytes, libc::MADV_WIPEONFORK) };
}

/// Whether the calling thread runs on the stack that it has set aside for signal handlers.
pub(crate) fn is_on_signal_stack() -> bool {
    // SAFETY: all zeros are a valid value, which the call replaces.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: asks only.
    let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) } == 0;
    asked && stack.ss_flags & libc::SS_ONSTACK != 0
}

/// After this, what any thread of the process did before is seen here, and what was stored here before is seen by whatever they
/// do next. So events need no fence of their own: they are many, calls of this are few.
pub(crate) fn order_all_threads() {
    const GLOBAL: i32 = 1;
    const EXPEDITED: i32 = 1 << 3;
    const REGISTER: i32 = 1 << 4;
    fence(Ordering::SeqCst);
    // SAFETY: the call takes numbers only.
    let membarrier = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    let ordered = (membarrier(REGISTER) && membarrier(EXPEDITED)) || membarrier(GLOBAL);
    if !ordered {
        // A kernel without it, or a sandbox that forbids it: every processor passes a barrier of its own by then.
        std::thread::sleep(Duration::from_millis(20));
    }
}
