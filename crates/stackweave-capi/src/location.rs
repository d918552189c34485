//! Source locations that the callbacks of hosts report.

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use stackweave_core::{Position, SourceLocation};

use crate::boundary::{CallError, call};
use crate::sized_struct::{self, SizedStruct};
use crate::status::stackweave_status;

/// A location in source code. Strings are UTF-8 and copied. An unknown number is 0: lines and columns count from 1.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_location {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// The function.
    pub name: *const c_char,
    /// The function, qualified with its outer scopes; null if there is no such name.
    pub qualname: *const c_char,
    /// The file.
    pub filename: *const c_char,
    /// The line on which the location begins.
    pub line: u32,
    /// The column at which it begins, in UTF-8 bytes.
    pub column: u32,
    /// The line on which it ends.
    pub end_line: u32,
    /// The column before which it ends.
    pub end_column: u32,
}

// SAFETY: numbers and pointers, for which zeros are valid; the size comes first.
unsafe impl SizedStruct for stackweave_location {
    const MIN_SIZE: usize = size_of::<Self>();
}

/// Receives the locations that a callback adds with stackweave_add_location.
#[derive(Debug)]
pub struct stackweave_location_list(Vec<SourceLocation>);

/// Returns the locations that a callback adds.
pub(crate) fn collect(callback: impl FnOnce(*mut stackweave_location_list)) -> Vec<SourceLocation> {
    let mut locations = stackweave_location_list(Vec::new());
    callback(&raw mut locations);
    locations.0
}

/// Adds a location to the list that a callback was called with: the location of the queried frame, or the next of the
/// original frames, innermost first. Must be called in that callback.
///
/// # Safety
/// `locations` is null, or the argument of a callback that has not returned; `location` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_add_location(
    locations: *mut stackweave_location_list,
    location: *const stackweave_location,
) -> stackweave_status {
    call(|| {
        // SAFETY: the caller guarantees that both are null or valid.
        let (locations, location) = unsafe { (locations.as_mut(), sized_struct::read(location)) };
        let locations = locations.ok_or_else(|| CallError::null("locations"))?;
        let bad =
            || CallError::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, "location is null, or its size is wrong");
        let location = location.ok_or_else(bad)?;
        // SAFETY: the caller guarantees that the strings are null or C strings.
        let text = |text| unsafe { text_of(text) };
        let known = |number: u32| (number != 0).then_some(number);
        locations.0.push(SourceLocation {
            name: text(location.name).ok_or_else(|| CallError::null("name"))?,
            qualname: text(location.qualname),
            filename: text(location.filename).ok_or_else(|| CallError::null("filename"))?,
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

/// Copies a string.
///
/// # Safety
/// `text` is null or a C string.
unsafe fn text_of(text: *const c_char) -> Option<Arc<str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into())
}
