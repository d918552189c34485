//! A word that the kernel clears in the copy of memory that a fork makes.
//!
//! The process id does not identify a fork: a child of `vfork` has another id and its parent's memory.
//!
//! Async-signal-safe, except [`make`].

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const PAGE: usize = 4096;
static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Maps the mark, if the kernel supports that. It must be called once.
pub(super) fn make() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: maps new memory that the kernel clears in children; without that support, the page is unmapped.
    unsafe {
        let page = libc::mmap(ptr::null_mut(), PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return;
        }
        if libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) == 0 {
            MARK.store(page.cast(), Ordering::Release);
            set();
        } else {
            libc::munmap(page, PAGE);
        }
    }
}

/// Sets the mark, so that later copies of the memory are detected.
pub(super) fn set() {
    if let Some(mark) = mark() {
        mark.store(1, Ordering::Relaxed);
    }
}

/// Returns whether this memory is a copy that a fork has made since [`set`]; `None` if that is unknown.
pub(super) fn is_copy() -> Option<bool> {
    mark().map(|mark| mark.load(Ordering::Relaxed) == 0)
}

fn mark() -> Option<&'static AtomicU32> {
    // SAFETY: null, or a page that stays mapped.
    unsafe { MARK.load(Ordering::Acquire).as_ref() }
}
