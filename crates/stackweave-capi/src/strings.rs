//! Strings that the library allocates for the host.

#![expect(clippy::cast_ptr_alignment, reason = "the layout aligns allocated strings, and freed ones are checked")]

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_char;

use crate::boundary::{CallError, call};
use crate::status::stackweave_status;

/// Precedes each string in memory.
#[repr(C)]
struct StringHeader {
    mark: u64,
    /// The length of the string, with its null byte.
    length: usize,
}

/// Marks a string that the library has allocated and the host has not freed. Combined with its address.
const MARK: u64 = 0x7374_6163_6b77_7673;

fn layout(length: usize) -> Option<Layout> {
    Layout::from_size_align(length.checked_add(size_of::<StringHeader>())?, align_of::<StringHeader>()).ok()
}

/// Copies a string for the host, which frees it with [`stackweave_free_string`].
pub(crate) fn allocate_string(text: &[u8]) -> Result<*mut c_char, CallError> {
    let no_memory = || CallError::new(stackweave_status::STACKWEAVE_NO_MEMORY, "no memory for the text");
    let length = text.len() + 1;
    // SAFETY: the layout is not empty.
    let block = unsafe { alloc(layout(length).ok_or_else(no_memory)?) }.cast::<StringHeader>();
    if block.is_null() {
        return Err(no_memory());
    }
    // SAFETY: the block has room for a header and `length` bytes.
    unsafe {
        let start = block.add(1).cast::<u8>();
        block.write(StringHeader { mark: MARK ^ start.addr() as u64, length });
        start.copy_from_nonoverlapping(text.as_ptr(), text.len());
        start.add(text.len()).write(0);
        Ok(start.cast())
    }
}

/// Frees a string that the library returned. Null is allowed. Another pointer, or a string that was freed already, is
/// rejected if that can be detected.
///
/// # Safety
/// `text` is null, or points to readable memory with 16 readable bytes before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_free_string(text: *mut c_char) -> stackweave_status {
    call(|| {
        if text.is_null() {
            return Ok(());
        }
        let foreign = || CallError::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, "not a string of this library");
        let header = text.cast::<StringHeader>();
        if !header.is_aligned() {
            return Err(foreign());
        }
        // SAFETY: the caller guarantees the memory before the text.
        unsafe {
            let header = header.sub(1);
            if (*header).mark != MARK ^ text.addr() as u64 {
                return Err(foreign());
            }
            let layout = layout((*header).length).ok_or_else(foreign)?;
            (*header).mark = 0;
            dealloc(header.cast(), layout);
        }
        Ok(())
    })
}

/// Returns the version of the library as `major.minor.patch`, which is never freed. May be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn allocated_strings_can_be_freed() {
        for text in ["", "a", "many letters"] {
            let allocated = allocate_string(text.as_bytes()).unwrap();
            // SAFETY: just allocated.
            unsafe {
                assert_eq!(CStr::from_ptr(allocated).to_str(), Ok(text));
                assert_eq!(stackweave_free_string(allocated), stackweave_status::STACKWEAVE_OK);
            }
        }
    }

    #[test]
    fn foreign_pointers_are_rejected() {
        let mut block = [0_u64; 8];
        let text = block.as_mut_ptr().cast::<c_char>();
        // SAFETY: inside the block, or null.
        unsafe {
            assert_eq!(stackweave_free_string(text.add(16)), stackweave_status::STACKWEAVE_BAD_ARGUMENT);
            assert_eq!(stackweave_free_string(text.add(19)), stackweave_status::STACKWEAVE_BAD_ARGUMENT);
            assert_eq!(stackweave_free_string(std::ptr::null_mut()), stackweave_status::STACKWEAVE_OK);
        }
    }
}
