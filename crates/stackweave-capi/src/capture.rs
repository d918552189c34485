//! Captures the stack of the calling thread.
//!
//! Hot file: no allocation when warm, no lock, no GIL, async-signal-safe once warm. So these functions don't set
//! [`crate::last_error`], whose thread-local memory the loader may have to allocate.

use std::ffi::c_void;
use std::hint::black_box;

use stackweave_capture::{Capture, CaptureRequest, CaptureStart, SourceStop, StopReason};
use stackweave_core::{StackId, StackPointer};
use stackweave_store::thread_words::thread_words;

use crate::boundary::call_signal_safe;
use crate::sized_struct::{self, SizedStruct};
use crate::stack::{number_of, stackweave_stack};
use crate::status::stackweave_status::{self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_NO_MEMORY, STACKWEAVE_OK};
use crate::stop_reason::stackweave_stop_reason;

/// Python frames.
pub const STACKWEAVE_CAPTURE_PYTHON: u32 = 1;
/// Native frames.
pub const STACKWEAVE_CAPTURE_NATIVE: u32 = 2;
/// Frames of registered frame sources.
pub const STACKWEAVE_CAPTURE_SCRIPT: u32 = 4;
/// Frames of all kinds.
pub const STACKWEAVE_CAPTURE_ALL: u32 = 7;

/// Which frames to capture. Initialize with STACKWEAVE_CAPTURE_REQUEST_INIT, then set the fields that differ.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_capture_request {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// At least one of STACKWEAVE_CAPTURE_PYTHON, STACKWEAVE_CAPTURE_NATIVE and STACKWEAVE_CAPTURE_SCRIPT.
    pub flags: u32,
    /// The number of innermost frames to omit. Frames of the library itself are never included.
    pub skip: u32,
    /// The number of innermost frames to keep; 0 keeps all.
    pub limit: u32,
}

// SAFETY: the structure has only numbers, and the size comes first.
unsafe impl SizedStruct for stackweave_capture_request {
    const MIN_SIZE: usize = size_of::<Self>();
}

/// Converts a request of the host; null requests all frames. Returns `None` if it is invalid.
///
/// # Safety
/// `request` is null, or points to a request whose size is correct.
#[inline]
unsafe fn read_request(request: *const stackweave_capture_request, start: CaptureStart) -> Option<CaptureRequest> {
    if request.is_null() {
        return Some(CaptureRequest { start, ..CaptureRequest::default() });
    }
    // SAFETY: guaranteed by the caller.
    let request = unsafe { sized_struct::read(request)? };
    if request.flags == 0 || request.flags & !STACKWEAVE_CAPTURE_ALL != 0 {
        return None;
    }
    Some(CaptureRequest {
        python: request.flags & STACKWEAVE_CAPTURE_PYTHON != 0,
        native: request.flags & STACKWEAVE_CAPTURE_NATIVE != 0,
        script: request.flags & STACKWEAVE_CAPTURE_SCRIPT != 0,
        skip: request.skip as usize,
        limit: if request.limit == 0 { usize::MAX } else { request.limit as usize },
        start,
    })
}

/// Writes the stack and the stop reason of a capture.
///
/// # Safety
/// `stack` is writable; `stop` is null or writable.
#[inline]
unsafe fn write_capture(
    captured: Capture,
    stack: *mut stackweave_stack,
    stop: *mut stackweave_stop_reason,
) -> stackweave_status {
    // The result of a capture that had no memory for its buffers.
    let had_no_memory = captured.source_stop == SourceStop::NoMemory
        && captured.native_stop == StopReason::BadMemory
        && captured.stack == Some(StackId::EMPTY);
    let Some(id) = captured.stack.filter(|_| !had_no_memory) else { return STACKWEAVE_NO_MEMORY };
    // SAFETY: the caller guarantees that both are writable, or that `stop` is null.
    unsafe {
        stack.write(number_of(id));
        if !stop.is_null() {
            stop.write(stackweave_stop_reason::of(captured));
        }
    }
    STACKWEAVE_OK
}

/// Captures the stack of the calling thread, starting with the caller of this function. The stack weaves native frames
/// with the frames of all registered interpreters. A null `request` requests all frames. `stop` is null, or receives
/// the reason why the stack is incomplete.
///
/// May be called anywhere: with any lock held, with or without the GIL, inside an allocator, in a signal handler once the
/// thread is prepared, and after Python has been finalized. It takes neither a lock nor the GIL, and never blocks.
///
/// # Safety
/// `request` and `stop` are null or valid; `stack` is writable.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_capture(
    request: *const stackweave_capture_request,
    stack: *mut stackweave_stack,
    stop: *mut stackweave_stop_reason,
) -> stackweave_status {
    let here = 0_u8;
    let own_frame = StackPointer(black_box(&raw const here).addr() as u64);
    let status = call_signal_safe(|| {
        // SAFETY: the caller guarantees the request.
        match unsafe { read_request(request, CaptureStart::CallerOf(own_frame)) } {
            // SAFETY: the caller guarantees both outputs.
            Some(request) if !stack.is_null() => unsafe {
                write_capture(stackweave_capture::capture(&request), stack, stop)
            },
            _ => STACKWEAVE_BAD_ARGUMENT,
        }
    });
    black_box(&here);
    status
}

/// Captures the stack that a signal interrupted. Must be called in the signal's handler, on the interrupted thread.
/// `context` is the third argument of a handler that was installed with SA_SIGINFO; the other arguments are those of
/// stackweave_capture.
///
/// # Safety
/// `context` is null or such an argument; the other arguments are as for `stackweave_capture`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_capture_from_context(
    context: *const c_void,
    request: *const stackweave_capture_request,
    stack: *mut stackweave_stack,
    stop: *mut stackweave_stop_reason,
) -> stackweave_status {
    call_signal_safe(|| {
        // SAFETY: the caller guarantees the request.
        let request = unsafe { read_request(request, CaptureStart::Caller) };
        let Some(request) = request.filter(|_| !stack.is_null() && !context.is_null()) else {
            return STACKWEAVE_BAD_ARGUMENT;
        };
        // SAFETY: the caller guarantees the context and the outputs.
        unsafe { write_capture(stackweave_capture::capture_from_context(context, &request), stack, stop) }
    })
}

/// Does the one-time work of the calling thread's first capture. Call this in a thread whose first capture would otherwise
/// be in a signal handler. Takes the dynamic loader's lock. Returns STACKWEAVE_NO_MEMORY if the loader had no static
/// thread-local memory left when the library was loaded; captures then work, but not in signal handlers.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_prepare_thread() -> stackweave_status {
    call_signal_safe(|| {
        if thread_words().is_err() {
            return STACKWEAVE_NO_MEMORY;
        }
        stackweave_unwind::prepare();
        let mut stack = 0;
        // SAFETY: the output is a local.
        unsafe {
            write_capture(stackweave_capture::capture(&CaptureRequest::default()), &raw mut stack, std::ptr::null_mut())
        }
    })
}
