//! A counter that forked children share with the process that began the recording.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;

/// The number of children that could not begin their recordings, in memory that all forked processes share.
#[derive(Debug)]
pub(super) struct UnrecordedChildren(Option<NonNull<AtomicU64>>);

// SAFETY: points to an atomic number in memory that lives as long as this value.
unsafe impl Send for UnrecordedChildren {}
// SAFETY: as above.
unsafe impl Sync for UnrecordedChildren {}

impl UnrecordedChildren {
    /// Maps the counter. If that fails, nothing is counted.
    pub(super) fn new() -> Self {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: maps new memory, of zeros.
        let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        Self(if page == libc::MAP_FAILED { None } else { NonNull::new(page.cast()) })
    }

    pub(super) fn add(&self) {
        if let Some(count) = self.count() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> u64 {
        self.count().map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn count(&self) -> Option<&AtomicU64> {
        // SAFETY: mapped until `drop`, aligned to a page.
        self.0.map(|count| unsafe { count.as_ref() })
    }
}

impl Drop for UnrecordedChildren {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            // SAFETY: mapped by `new`, with this length; no other code has the address.
            unsafe { libc::munmap(count.as_ptr().cast(), PAGE) };
        }
    }
}
