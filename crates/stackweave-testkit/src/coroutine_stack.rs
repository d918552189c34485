//! Stacks for coroutines, in separately mapped memory.

use std::ffi::c_void;

const PAGE: usize = 4096;

/// Mapped pages, with an inaccessible page behind their end.
#[derive(Debug)]
pub struct MappedStack {
    start: *mut c_void,
    size: usize,
}

impl MappedStack {
    /// Maps `pages` pages and the inaccessible one; at the address `place`, if it is given.
    ///
    /// # Panics
    /// When the system has no memory, or something is mapped at `place`.
    pub fn new(pages: usize, place: Option<usize>) -> Self {
        let size = pages * PAGE;
        let fixed = if place.is_none() { 0 } else { libc::MAP_FIXED_NOREPLACE };
        let place = std::ptr::with_exposed_provenance_mut(place.unwrap_or(0));
        // SAFETY: maps new memory, and never over existing mappings.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
            libc::mmap(place, size + PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert!(start != libc::MAP_FAILED, "mmap failed");
        assert!(place.is_null() || start == place, "the address is in use");
        // SAFETY: this is the last page of the mapping made above.
        let guarded = unsafe { libc::mprotect(start.byte_add(size), PAGE, libc::PROT_NONE) };
        assert_eq!(guarded, 0, "mprotect failed");
        Self { start, size }
    }

    /// Returns its lowest address.
    pub const fn start(&self) -> *mut c_void {
        self.start
    }

    /// Returns its size in bytes.
    pub const fn size(&self) -> usize {
        self.size
    }
}

impl Drop for MappedStack {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; nothing runs on it any longer.
        unsafe { libc::munmap(self.start, self.size + PAGE) };
    }
}
