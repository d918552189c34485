//! Stacks to names.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use stackweave_core::StackId;
use stackweave_profile::{Frame, write_json};

use crate::border::{Fault, call};
use crate::frame::{Texts, stackweave_frame};
use crate::process_resolver::{ThisProcess, resolver};
use crate::stack::{self, stackweave_stack};
use crate::status::stackweave_status::{
    self, STACKWEAVE_BUFFER_TOO_SMALL, STACKWEAVE_INTERNAL, STACKWEAVE_STOPPED, STACKWEAVE_UNKNOWN_STACK,
};
use crate::strings;

type Stack = Arc<[Arc<Frame>]>;

/// Called for each frame: of the `stack`-th of the stacks that were asked for, its `frame`-th frame from the innermost.
/// Anything but 0 ends the call. No lock of the library is held. It must not throw or jump out.
pub type stackweave_frame_callback = Option<
    unsafe extern "C" fn(data: *mut c_void, stack: usize, frame: usize, named: *const stackweave_frame) -> c_int,
>;

/// # Safety
/// `stacks` has `count` elements, or is null.
unsafe fn resolved(stacks: *const stackweave_stack, count: usize) -> Result<Vec<Stack>, Fault> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if stacks.is_null() {
        return Err(Fault::null("stacks"));
    }
    // SAFETY: the caller vouches for the elements.
    let stacks = unsafe { std::slice::from_raw_parts(stacks, count) };
    let id = |(index, stack): (usize, &stackweave_stack)| {
        let unknown = || Fault::new(STACKWEAVE_UNKNOWN_STACK, format!("stack {index}, {stack:#x}, is not known"));
        stack::id(*stack).ok_or_else(unknown)
    };
    let ids = stacks.iter().enumerate().map(id).collect::<Result<Vec<StackId>, Fault>>()?;
    Ok(resolver()?.resolve(stackweave_capture::stacks(), &ids, &ThisProcess))
}

/// Names the frames of `count` stacks, all in one batch, which is cheaper than one by one, and calls back for each frame:
/// the stacks in their order, each innermost first. Calls that were inlined are frames of their own.
///
/// Reads debug information, allocates and takes locks of its own, and may call sources and extra frames: not to be called
/// inside an allocator, with a lock held that those take, or in a signal handler. It needs no GIL.
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
        let callback = callback.ok_or_else(|| Fault::null("callback"))?;
        let mut texts = Texts::default();
        // SAFETY: the caller vouches for the stacks.
        for (stack_index, stack) in unsafe { resolved(stacks, count)? }.iter().enumerate() {
            for (index, frame) in stack.iter().enumerate() {
                let named = texts.write(frame);
                // SAFETY: the caller vouches for the callback.
                if unsafe { callback(data, stack_index, index, &raw const named) } != 0 {
                    return Err(Fault::new(STACKWEAVE_STOPPED, "the callback asked to stop"));
                }
            }
        }
        Ok(())
    })
}

/// # Safety
/// `stacks` has `count` elements, or is null.
unsafe fn json(stacks: *const stackweave_stack, count: usize) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::new();
    // SAFETY: passed on to the caller.
    let resolved = unsafe { resolved(stacks, count)? };
    write_json(&mut text, &resolved).map_err(|error| Fault::new(STACKWEAVE_INTERNAL, error.to_string()))?;
    Ok(text)
}

/// As stackweave_resolve, to JSON: a list of stacks, each a list of objects with `name`, `filename`, `line`, `kind`,
/// `inlined`, and where they are known `qualname`, `column`, `end_line`, `end_column`, `module`, `address`. (There,
/// Python's columns count from 0, as Python itself counts them.) The text is to be freed by stackweave_free_string.
///
/// # Safety
/// `stacks` has `count` elements; `text` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_resolve_json(
    stacks: *const stackweave_stack,
    count: usize,
    text: *mut *mut c_char,
) -> stackweave_status {
    call(|| {
        if text.is_null() {
            return Err(Fault::null("text"));
        }
        // SAFETY: not null, and the caller vouches for both.
        unsafe {
            text.write(std::ptr::null_mut());
            text.write(strings::give(&json(stacks, count)?)?);
        }
        Ok(())
    })
}

/// As stackweave_resolve_json, into a buffer of `capacity` bytes, with a null byte at the end. The length of the text,
/// without that byte, is written to `length`. If it does not fit, the buffer gets an empty text, and the status says so.
///
/// # Safety
/// `stacks` has `count` elements, `buffer` `capacity` bytes; `length` is null or can be written to.
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
            return Err(Fault::null(if length.is_null() { "length" } else { "buffer" }));
        }
        // SAFETY: the caller vouches for the stacks.
        let text = unsafe { json(stacks, count)? };
        // SAFETY: not null, and the caller vouches for it.
        unsafe { length.write(text.len()) };
        let fits = text.len() < capacity;
        let written: &[u8] = if fits { &text } else { &[] };
        if capacity != 0 {
            // SAFETY: the buffer has `capacity` bytes, more than are written.
            unsafe {
                buffer.cast::<u8>().copy_from_nonoverlapping(written.as_ptr(), written.len());
                buffer.add(written.len()).write(0);
            }
        }
        let needed = || format!("the text needs {} bytes, the buffer has {capacity}", text.len() + 1);
        if fits { Ok(()) } else { Err(Fault::new(STACKWEAVE_BUFFER_TOO_SMALL, needed())) }
    })
}
