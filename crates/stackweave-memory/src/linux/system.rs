//! System calls of the hooks.
//!
//! Each is async-signal-safe.

use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Returns the address of the calling thread's `errno`, which does not change.
pub(crate) fn errno_pointer() -> *mut i32 {
    // SAFETY: has no conditions.
    unsafe { libc::__errno_location() }
}

/// Returns the calling thread's id in the kernel.
pub(crate) fn kernel_thread_id() -> u32 {
    // SAFETY: has no conditions.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Returns whether no thread of this process has this id.
pub(crate) fn is_gone(tid: u32) -> bool {
    let errno = errno_pointer();
    // SAFETY: signal 0 is not sent: the call only checks whether it could be. `errno` is the thread's own.
    unsafe {
        let before = *errno;
        let failed = libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) != 0;
        let is_gone = failed && *errno == libc::ESRCH;
        *errno = before;
        is_gone
    }
}

/// Maps new memory of zeros.
pub(crate) fn map_zeros(bytes: usize) -> Option<NonNull<u8>> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: maps new memory.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { None } else { NonNull::new(mapped.cast()) }
}

/// Makes the kernel clear these whole pages in forked children. A kernel before 4.14 can't: there a child has what the
/// parent had, and its recording begins at its first event.
pub(crate) fn clear_in_children(start: *const u8, bytes: usize) {
    // SAFETY: the pages belong to a static, and are anonymous memory; they do not change in this process.
    unsafe { libc::madvise(start.cast_mut().cast(), bytes, libc::MADV_WIPEONFORK) };
}

/// Returns whether the calling thread runs on its alternate signal stack.
pub(crate) fn is_on_signal_stack() -> bool {
    // SAFETY: all zeros are a valid value, which the call replaces.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call only reads.
    let is_known = unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) } == 0;
    is_known && stack.ss_flags & libc::SS_ONSTACK != 0
}

/// Orders memory accesses of all threads: what any thread of the process did before this call is visible here, and what
/// was stored here before it is visible to whatever they do next. So events, which are far more frequent, need no
/// fence.
pub(crate) fn order_all_threads() {
    const GLOBAL: i32 = 1;
    const EXPEDITED: i32 = 1 << 3;
    const REGISTER: i32 = 1 << 4;
    fence(Ordering::SeqCst);
    // SAFETY: the call takes numbers only.
    let membarrier = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    let ordered = (membarrier(REGISTER) && membarrier(EXPEDITED)) || membarrier(GLOBAL);
    if !ordered {
        // Without it (an old kernel, or a sandbox that forbids it): by then every processor has passed a barrier.
        std::thread::sleep(Duration::from_millis(20));
    }
}
