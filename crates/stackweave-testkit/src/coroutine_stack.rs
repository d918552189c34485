//! Stacks for coroutines, in memory of every kind.

use std::ffi::c_void;

const PAGE: usize = 4096;

/// Pages of their own, with a page behind the end that nothing may touch.
#[derive(Debug)]
pub struct MappedStack {
    start: *mut c_void,
    size: usize,
}

impl MappedStack {
    /// Maps `pages` pages and the forbidden one; at the address `place`, if that is given.
    ///
    /// # Panics
    /// When the system has no memory, or something is mapped at `place`.
    pub fn new(pages: usize, place: Option<usize>) -> Self {
        let size = pages * PAGE;
        let fixed = if place.is_none() { 0 } else { libc::MAP_FIXED_NOREPLACE };
        let place = std::ptr::with_exposed_provenance_mut(place.unwrap_or(0));
        // SAFETY: maps new memory, and never over what is there.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
            libc::mmap(place, size + PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert!(start != libc::MAP_FAILED, "mmap failed");
        assert!(place.is_null() || start == place, "the place is taken");
        // SAFETY: the last page of the mapping made above.
        let guarded = unsafe { libc::mprotect(start.byte_add(size), PAGE, libc::PROT_NONE) };
        assert_eq!(guarded, 0, "mprotect failed");
        Self { start, size }
    }

    /// Its lowest address.
    pub const fn start(&self) -> *mut c_void {
        self.start
    }

    /// Its size in bytes.
    pub const fn size(&self) -> usize {
        self.size
    }
}

impl Drop for MappedStack {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; nothing runs on it any more.
        unsafe { libc::munmap(self.start, self.size + PAGE) };
    }
}
