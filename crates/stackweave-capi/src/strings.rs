//! Texts that the library gives out.

#![expect(clippy::cast_ptr_alignment, reason = "a block is as aligned as its layout, and what is freed is checked")]

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_char;

use crate::border::{Fault, call};
use crate::status::stackweave_status;

/// In front of each text.
#[repr(C)]
struct Header {
    mark: u64,
    /// Of the text, with its null byte.
    length: usize,
}

/// That a text is the library's, and has not been freed. Mixed with its address.
const MARK: u64 = 0x7374_6163_6b77_7673;

fn layout(length: usize) -> Option<Layout> {
    Layout::from_size_align(length.checked_add(size_of::<Header>())?, align_of::<Header>()).ok()
}

/// A copy for C, which frees it by [`stackweave_free_string`].
pub(crate) fn give(text: &[u8]) -> Result<*mut c_char, Fault> {
    let no_memory = || Fault::new(stackweave_status::STACKWEAVE_NO_MEMORY, "no memory for the text");
    let length = text.len() + 1;
    // SAFETY: the layout is not empty.
    let block = unsafe { alloc(layout(length).ok_or_else(no_memory)?) }.cast::<Header>();
    if block.is_null() {
        return Err(no_memory());
    }
    // SAFETY: a block for a header and `length` bytes.
    unsafe {
        let start = block.add(1).cast::<u8>();
        block.write(Header { mark: MARK ^ start.addr() as u64, length });
        start.copy_from_nonoverlapping(text.as_ptr(), text.len());
        start.add(text.len()).write(0);
        Ok(start.cast())
    }
}

/// Frees a text that the library gave. Null is allowed. One that is not the library's, or was freed, is refused as far
/// as that can be told.
///
/// # Safety
/// `text` is null, or memory that can be read, with 16 bytes before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_free_string(text: *mut c_char) -> stackweave_status {
    call(|| {
        if text.is_null() {
            return Ok(());
        }
        let foreign = || Fault::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, "not a text of this library");
        let header = text.cast::<Header>();
        if !header.is_aligned() {
            return Err(foreign());
        }
        // SAFETY: the caller vouches for the memory before the text.
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

/// The version of the library, for ever: `major.minor.patch`. May be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_text_is_given_and_taken_back() {
        for text in ["", "a", "many letters"] {
            let given = give(text.as_bytes()).unwrap();
            // SAFETY: just given.
            unsafe {
                assert_eq!(CStr::from_ptr(given).to_str(), Ok(text));
                assert_eq!(stackweave_free_string(given), stackweave_status::STACKWEAVE_OK);
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_refused() {
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
