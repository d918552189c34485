//! Capturing.
//!
//! Hot file: no allocation when warm, no lock, no GIL, async-signal-safe once warm. So it says nothing by
//! [`crate::last_error`], whose memory the loader may have to allocate.

use std::ffi::c_void;
use std::hint::black_box;

use stackweave_capture::{Capture, Request, SourceStop, Start, StopReason};
use stackweave_core::{StackId, StackPointer};
use stackweave_store::thread_words::thread_words;

use crate::border::call_quietly;
use crate::growing::{self, Growing};
use crate::stack::{number, stackweave_stack};
use crate::status::stackweave_status::{self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_NO_MEMORY, STACKWEAVE_OK};
use crate::stop::stackweave_stop;

/// Python frames.
pub const STACKWEAVE_PYTHON: u32 = 1;
/// Native frames.
pub const STACKWEAVE_NATIVE: u32 = 2;
/// Frames of registered sources.
pub const STACKWEAVE_SCRIPT: u32 = 4;
/// Frames of all kinds.
pub const STACKWEAVE_ALL: u32 = 7;

/// What to capture. Set with STACKWEAVE_REQUEST_INIT, and then what is to differ.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_request {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// Which frames: STACKWEAVE_PYTHON, STACKWEAVE_NATIVE, STACKWEAVE_SCRIPT, at least one.
    pub flags: u32,
    /// How many of the innermost frames to leave out. The library's own are not there to begin with.
    pub skip: u32,
    /// How many frames to keep at most, the innermost; 0: all.
    pub limit: u32,
}

// SAFETY: numbers, the size first.
unsafe impl Growing for stackweave_request {
    const FIRST: usize = size_of::<Self>();
}

/// `None`: a bad request.
///
/// # Safety
/// `request` is null, or points to a request with a true size.
#[inline]
unsafe fn asked(request: *const stackweave_request, start: Start) -> Option<Request> {
    if request.is_null() {
        return Some(Request { start, ..Request::default() });
    }
    // SAFETY: passed on to the caller.
    let request = unsafe { growing::read(request)? };
    if request.flags == 0 || request.flags & !STACKWEAVE_ALL != 0 {
        return None;
    }
    Some(Request {
        python: request.flags & STACKWEAVE_PYTHON != 0,
        native: request.flags & STACKWEAVE_NATIVE != 0,
        script: request.flags & STACKWEAVE_SCRIPT != 0,
        skip: request.skip as usize,
        limit: if request.limit == 0 { usize::MAX } else { request.limit as usize },
        start,
    })
}

/// # Safety
/// `stack` can be written to; `stop` is null or can be.
#[inline]
unsafe fn answer(captured: Capture, stack: *mut stackweave_stack, stop: *mut stackweave_stop) -> stackweave_status {
    // What a capture says that got no memory to work in.
    let got_nothing = captured.source_stop == SourceStop::NoMemory
        && captured.native_stop == StopReason::BadMemory
        && captured.stack == Some(StackId::EMPTY);
    let Some(id) = captured.stack.filter(|_| !got_nothing) else { return STACKWEAVE_NO_MEMORY };
    // SAFETY: the caller vouches for both.
    unsafe {
        stack.write(number(id));
        if !stop.is_null() {
            stop.write(stackweave_stop::of(captured));
        }
    }
    STACKWEAVE_OK
}

/// Captures the calling thread's stack, from the function that calls this outward: native frames and those of every
/// interpreter that is known, woven, as a number. `request`: null for everything. `stop`: null, or where to write
/// why the stack is not whole.
///
/// May be called anywhere: with any lock held, with the GIL or without, inside an allocator, in a signal handler once the
/// thread is prepared, after Python's end. It takes no lock and no GIL, and waits for nobody.
///
/// # Safety
/// `request` and `stop` are null or valid, `stack` can be written to.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_capture(
    request: *const stackweave_request,
    stack: *mut stackweave_stack,
    stop: *mut stackweave_stop,
) -> stackweave_status {
    let here = 0_u8;
    let own_frame = StackPointer(black_box(&raw const here).addr() as u64);
    let status = call_quietly(|| {
        // SAFETY: the caller vouches for the request.
        match unsafe { asked(request, Start::CallerOf(own_frame)) } {
            // SAFETY: the caller vouches for both outputs.
            Some(asked) if !stack.is_null() => unsafe { answer(stackweave_capture::capture(&asked), stack, stop) },
            _ => STACKWEAVE_BAD_ARGUMENT,
        }
    });
    black_box(&here);
    status
}

/// As stackweave_capture, of what a signal interrupted: to be called from its handler, on the thread that it interrupted,
/// with the third argument of a handler that was installed with SA_SIGINFO.
///
/// # Safety
/// `context` is null or such an argument; the others as for `stackweave_capture`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_capture_from_context(
    context: *const c_void,
    request: *const stackweave_request,
    stack: *mut stackweave_stack,
    stop: *mut stackweave_stop,
) -> stackweave_status {
    call_quietly(|| {
        // SAFETY: the caller vouches for the request.
        let asked = unsafe { asked(request, Start::Caller) };
        let Some(asked) = asked.filter(|_| !stack.is_null() && !context.is_null()) else {
            return STACKWEAVE_BAD_ARGUMENT;
        };
        // SAFETY: the caller vouches for the context and the outputs.
        unsafe { answer(stackweave_capture::capture_from_context(context, &asked), stack, stop) }
    })
}

/// Pays now what the first capture of this thread would pay. A thread whose first capture would otherwise be in a signal
/// handler calls this first. Takes the dynamic loader's lock. STACKWEAVE_NO_MEMORY if the loader had no static thread-local
/// memory left when the library was loaded: captures then work, but not in signal handlers.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_prepare() -> stackweave_status {
    call_quietly(|| {
        if thread_words().is_err() {
            return STACKWEAVE_NO_MEMORY;
        }
        stackweave_unwind::prepare();
        let mut stack = 0;
        // SAFETY: the output is a local.
        unsafe { answer(stackweave_capture::capture(&Request::default()), &raw mut stack, std::ptr::null_mut()) }
    })
}
