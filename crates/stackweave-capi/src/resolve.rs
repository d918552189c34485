//! Names the frames of stacks.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use stackweave_core::StackId;
use stackweave_profile::{Frame, write_json};

use crate::boundary::{CallError, call};
use crate::frame::{FrameTexts, stackweave_frame};
use crate::process_resolver::{ProcessNames, resolver};
use crate::stack::{self, stackweave_stack};
use crate::status::stackweave_status::{
    self, STACKWEAVE_BUFFER_TOO_SMALL, STACKWEAVE_INTERNAL, STACKWEAVE_STOPPED, STACKWEAVE_UNKNOWN_STACK,
};
use crate::strings;

type NamedStack = Arc<[Arc<Frame>]>;

/// Called for each frame: `stack` is the index of the stack in the call, `frame` the index of the frame from the innermost.
/// A result other than 0 ends the call. No lock of the library is held. It must not throw or `longjmp`.
pub type stackweave_frame_callback = Option<
    unsafe extern "C" fn(data: *mut c_void, stack: usize, frame: usize, named: *const stackweave_frame) -> c_int,
>;

/// Resolves the stacks of a host.
///
/// # Safety
/// `stacks` has `count` elements, or is null.
unsafe fn resolved(stacks: *const stackweave_stack, count: usize) -> Result<Vec<NamedStack>, CallError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if stacks.is_null() {
        return Err(CallError::null("stacks"));
    }
    // SAFETY: the caller guarantees the elements.
    let stacks = unsafe { std::slice::from_raw_parts(stacks, count) };
    let id = |(index, stack): (usize, &stackweave_stack)| {
        let unknown = || CallError::new(STACKWEAVE_UNKNOWN_STACK, format!("stack {index}, {stack:#x}, is unknown"));
        stack::id_of(*stack).ok_or_else(unknown)
    };
    let ids = stacks.iter().enumerate().map(id).collect::<Result<Vec<StackId>, CallError>>()?;
    Ok(resolver()?.resolve(stackweave_capture::stacks(), &ids, &ProcessNames))
}

/// Names the frames of `count` stacks in one batch, which is cheaper than one call for each stack, and calls the callback
/// for each frame: the stacks in their order, each innermost frame first. Each inlined call is a separate frame.
///
/// It reads debug information, allocates, takes locks of the library, and may call frame sources and code generators. Do not
/// call it inside an allocator, with a lock held that these callbacks take, or in a signal handler. It does not need the GIL.
///
/// # Safety
/// `stacks` has `count` elements, and `callback` may be called with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_resolve(
    stacks: *const stackweave_stack,
    count: usize,
    callback: stackweave_frame_callback,
    data: *mut c_void,
) -> stackweave_status {
    call(|| {
        let callback = callback.ok_or_else(|| CallError::null("callback"))?;
        let mut texts = FrameTexts::default();
        // SAFETY: the caller guarantees the elements.
        for (stack_index, stack) in unsafe { resolved(stacks, count)? }.iter().enumerate() {
            for (index, frame) in stack.iter().enumerate() {
                let named = texts.write(frame);
                // SAFETY: guaranteed by the caller.
                if unsafe { callback(data, stack_index, index, &raw const named) } != 0 {
                    return Err(CallError::new(STACKWEAVE_STOPPED, "the callback requested to stop"));
                }
            }
        }
        Ok(())
    })
}

/// Resolves the stacks of a host to JSON.
///
/// # Safety
/// `stacks` has `count` elements, or is null.
unsafe fn json(stacks: *const stackweave_stack, count: usize) -> Result<Vec<u8>, CallError> {
    let mut text = Vec::new();
    // SAFETY: guaranteed by the caller.
    let resolved = unsafe { resolved(stacks, count)? };
    write_json(&mut text, &resolved).map_err(|error| CallError::new(STACKWEAVE_INTERNAL, error.to_string()))?;
    Ok(text)
}

/// Resolves stacks as stackweave_resolve does, to JSON: a list of stacks, each a list of objects with `name`, `filename`,
/// `line`, `kind`, `inlined`, and, where they are known, `qualname`, `column`, `end_line`, `end_column`, `module` and
/// `address`. Columns of Python count from 0 there, as in Python itself. Free the text with stackweave_free_string.
///
/// # Safety
/// `stacks` has `count` elements; `text` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_resolve_json(
    stacks: *const stackweave_stack,
    count: usize,
    text: *mut *mut c_char,
) -> stackweave_status {
    call(|| {
        if text.is_null() {
            return Err(CallError::null("text"));
        }
        // SAFETY: `text` is not null; the caller guarantees the rest.
        unsafe {
            text.write(std::ptr::null_mut());
            text.write(strings::allocate_string(&json(stacks, count)?)?);
        }
        Ok(())
    })
}

/// Writes the JSON of stackweave_resolve_json to a buffer of `capacity` bytes, with a null byte at the end. `length` receives
/// the length of the text without that byte. If the text does not fit, an empty text is written and the call returns
/// STACKWEAVE_BUFFER_TOO_SMALL.
///
/// # Safety
/// `stacks` has `count` elements, `buffer` has `capacity` bytes; `length` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_resolve_json_into(
    stacks: *const stackweave_stack,
    count: usize,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> stackweave_status {
    call(|| {
        if length.is_null() || (buffer.is_null() && capacity != 0) {
            return Err(CallError::null(if length.is_null() { "length" } else { "buffer" }));
        }
        // SAFETY: the caller guarantees the elements.
        let text = unsafe { json(stacks, count)? };
        // SAFETY: not null; the caller guarantees the rest.
        unsafe { length.write(text.len()) };
        let fits = text.len() < capacity;
        let written: &[u8] = if fits { &text } else { &[] };
        if capacity != 0 {
            // SAFETY: the buffer has `capacity` bytes, which is more than is written.
            unsafe {
                buffer.cast::<u8>().copy_from_nonoverlapping(written.as_ptr(), written.len());
                buffer.add(written.len()).write(0);
            }
        }
        let needed = || format!("the text needs {} bytes, the buffer has {capacity}", text.len() + 1);
        if fits { Ok(()) } else { Err(CallError::new(STACKWEAVE_BUFFER_TOO_SMALL, needed())) }
    })
}
