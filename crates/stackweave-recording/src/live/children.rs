//! What forked children let the process know that began the recording.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;

/// How many children could not begin their recordings. It is shared by all processes that were forked.
#[derive(Debug)]
pub(super) struct Unrecorded(Option<NonNull<AtomicU64>>);

// SAFETY: leads to an atomic number in memory that lives as long as this.
unsafe impl Send for Unrecorded {}
// SAFETY: as above.
unsafe impl Sync for Unrecorded {}

impl Unrecorded {
    /// Maps the number. Where there is no memory for it, nothing is counted.
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

impl Drop for Unrecorded {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            // SAFETY: mapped by `new`, with this length; nobody else has the address.
            unsafe { libc::munmap(count.as_ptr().cast(), PAGE) };
        }
    }
}
