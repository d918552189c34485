//! A word that the kernel clears in the copy of memory that a fork makes.
//!
//! The number of the process does not tell a fork: a child of `vfork` has another one, and its parent's very memory.
//!
//! Async-signal-safe, but for making it.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const PAGE: usize = 4096;
static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Makes the mark, where the kernel can do that. To be called once.
pub(super) fn make() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: maps new memory, and has the kernel clear it in children; if it can't, the page is given back.
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

/// This process is known for what it is.
pub(super) fn set() {
    if let Some(mark) = mark() {
        mark.store(1, Ordering::Relaxed);
    }
}

/// Whether this memory is a copy that a fork has made since [`set`]; `None` if that can't be known.
pub(super) fn is_copy() -> Option<bool> {
    mark().map(|mark| mark.load(Ordering::Relaxed) == 0)
}

fn mark() -> Option<&'static AtomicU32> {
    // SAFETY: null, or a page that stays.
    unsafe { MARK.load(Ordering::Acquire).as_ref() }
}
