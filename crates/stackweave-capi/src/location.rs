//! Places in source code, as hosts say them.

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use stackweave_core::{Position, SourceLocation};

use crate::border::{Fault, call};
use crate::growing::{self, Growing};
use crate::status::stackweave_status;

/// A place in source code. Texts are in UTF-8 and copied. A number that is not known is 0: lines and columns count from 1.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_location {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// The function.
    pub name: *const c_char,
    /// The function with what is around it; null if there is no such name.
    pub qualname: *const c_char,
    /// The file.
    pub filename: *const c_char,
    /// Where the place begins.
    pub line: u32,
    /// As `line`, in UTF-8 bytes.
    pub column: u32,
    /// Where it ends.
    pub end_line: u32,
    /// The column before which it ends.
    pub end_column: u32,
}

// SAFETY: numbers and pointers, the size first; null is a valid pointer.
unsafe impl Growing for stackweave_location {
    const FIRST: usize = size_of::<Self>();
}

/// Where a callback puts the places it was asked for, by stackweave_locations_add, before it returns.
#[derive(Debug)]
pub struct stackweave_locations(Vec<SourceLocation>);

/// What a callback adds, and nothing of it if it says nothing.
pub(crate) fn collect(ask: impl FnOnce(*mut stackweave_locations)) -> Vec<SourceLocation> {
    let mut locations = stackweave_locations(Vec::new());
    ask(&raw mut locations);
    locations.0
}

/// Adds a place: the frame that was asked about, or behind a line the next frame, innermost first. For callbacks, with the
/// `locations` they were called with.
///
/// # Safety
/// `locations` is null, or what a callback that has not returned got; `location` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_locations_add(
    locations: *mut stackweave_locations,
    location: *const stackweave_location,
) -> stackweave_status {
    call(|| {
        // SAFETY: the caller vouches for both.
        let (locations, location) = unsafe { (locations.as_mut(), growing::read(location)) };
        let locations = locations.ok_or_else(|| Fault::null("locations"))?;
        let bad = || Fault::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, "location is null or of a wrong size");
        let location = location.ok_or_else(bad)?;
        // SAFETY: the caller vouches for the texts.
        let text = |text| unsafe { text_of(text) };
        let known = |number: u32| (number != 0).then_some(number);
        locations.0.push(SourceLocation {
            name: text(location.name).ok_or_else(|| Fault::null("name"))?,
            qualname: text(location.qualname),
            filename: text(location.filename).ok_or_else(|| Fault::null("filename"))?,
            first_line: None,
            position: Position {
                line: known(location.line),
                end_line: known(location.end_line),
                column: location.column.checked_sub(1),
                end_column: location.end_column.checked_sub(1),
            },
        });
        Ok(())
    })
}

/// # Safety
/// `text` is null or a C string.
unsafe fn text_of(text: *const c_char) -> Option<Arc<str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: passed on to the caller.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into())
}
