//! The function that the interpreter calls to evaluate a frame, on 3.10 and 3.11.
//!
//! Hot file: no allocation, no lock, no Python code but the frame's own. A thread that is stopped inside when the
//! interpreter shuts down is unwound by force, so the functions have nothing to drop.

use core::ffi::c_int;
use core::mem;
use core::sync::atomic::Ordering;

use super::eval_hook::{IS_RECORDING, RECURSION_LIMIT, run, step_aside};
use super::evaluated_frame::EvaluatedFrame;
use super::live_frame::{LiveFrame, field};
use super::{CallFrame, CallObserver, Entering, Leaving, stack_guard};
use crate::public_api::ObjectPointer;

/// `recursion_depth` and `recursion_headroom` of a thread state of 3.10.
const DEPTH_3_10: usize = 32;
const HEADROOM_3_10: usize = 36;
/// At lower depths the limit is not read. If the program has set a smaller limit, a refused call is recorded as one
/// that raises.
const SHALLOW: c_int = 400;
/// `tracing` of a thread state of both: not 0 inside a trace or profile function, whose calls no mechanism records.
const TRACING: usize = 44;
/// `f_state` of a frame of 3.10.
const STATE_3_10: usize = 108;
/// `recursion_remaining` and `recursion_headroom` of a thread state of 3.11.
const REMAINING_3_11: usize = 32;
const HEADROOM_3_11: usize = 40;
/// The distance from a frame back to `gi_frame_state` of its generator, on 3.11.
const GENERATOR_STATE_BEFORE: u64 = 5;
const SUSPENDED: i8 = -1;
/// `co_flags` of generators, coroutines and asynchronous generators.
const MAKES_GENERATOR: u32 = 0x20 | 0x80 | 0x200;

/// # Safety
/// The interpreter calls it.
pub(super) unsafe extern "C-unwind" fn evaluate_3_10<O: CallObserver>(
    state: u64,
    frame: u64,
    throw: c_int,
) -> ObjectPointer {
    // SAFETY: the frame is alive until this returns, and linked to its caller; this is a mechanism, on the frame's
    // thread.
    unsafe {
        if !is_recording(state) || is_refused_3_10(state) {
            return run(state, frame, throw);
        }
        let entered = LiveFrame::<10>::new(frame);
        let entering = match (throw, entered.unit()) {
            (0, u32::MAX) => Entering::Call,
            (0, _) => Entering::Resume,
            _ => Entering::Throw,
        };
        O::enter(entering, entered);
        let result = run(state, frame, throw);
        if IS_RECORDING.load(Ordering::Relaxed) {
            let is_suspended = field::<i8>(frame, STATE_3_10) == SUSPENDED;
            O::leave(leaving(result, is_suspended), entered);
        }
        result
    }
}

/// # Safety
/// The interpreter calls it.
pub(super) unsafe extern "C-unwind" fn evaluate_3_11<O: CallObserver>(
    state: u64,
    frame: u64,
    throw: c_int,
) -> ObjectPointer {
    // SAFETY: the frame is alive when this is called. That of a generator is alive when it returns; of others only the
    // address is used then. This is a mechanism, on the thread of the frame.
    unsafe {
        let about_to_run = LiveFrame::<11>::new(frame);
        let is_in_generator = about_to_run.is_in_generator();
        // A frame that is not yet in its generator only creates that.
        let only_creates_generator = !is_in_generator && about_to_run.code_flags() & MAKES_GENERATOR != 0;
        if !is_recording(state) || only_creates_generator || is_refused_3_11(state) {
            return run(state, frame, throw);
        }
        if !stack_guard::has_room() {
            return step_aside(state, frame, throw);
        }
        let entering = if throw != 0 {
            Entering::Throw
        } else if is_in_generator && !about_to_run.is_before(about_to_run.first_traceable()) {
            Entering::Resume
        } else {
            Entering::Call
        };
        let entered = EvaluatedFrame::entering(about_to_run, state);
        O::enter(entering, entered);
        let result = run(state, frame, throw);
        if IS_RECORDING.load(Ordering::Relaxed) {
            let is_suspended = is_in_generator && field::<i8>(frame - GENERATOR_STATE_BEFORE, 0) == SUSPENDED;
            O::leave(leaving(result, is_suspended), entered.ended());
        }
        result
    }
}

/// # Safety
/// The state is this thread's.
#[inline(always)]
unsafe fn is_recording(state: u64) -> bool {
    // SAFETY: passed on to the caller.
    IS_RECORDING.load(Ordering::Relaxed) && unsafe { field::<c_int>(state, TRACING) } == 0
}

#[inline(always)]
fn leaving(result: ObjectPointer, is_suspended: bool) -> Leaving {
    if result.is_null() {
        Leaving::Raise
    } else if is_suspended {
        Leaving::Yield
    } else {
        Leaving::Return
    }
}

/// Returns whether the interpreter will refuse to run a frame because the recursion is too deep: then the frame never
/// begins.
///
/// # Safety
/// The state is this thread's.
#[inline(always)]
unsafe fn is_refused_3_10(state: u64) -> bool {
    // SAFETY: passed on to the caller.
    let depth: c_int = unsafe { field(state, DEPTH_3_10) };
    // SAFETY: as above.
    depth > SHALLOW && unsafe { is_at_limit_3_10(state, depth) }
}

/// # Safety
/// The state is this thread's.
#[inline(never)]
unsafe fn is_at_limit_3_10(state: u64, depth: c_int) -> bool {
    // SAFETY: passed on to the caller; the signature is that of the documentation.
    unsafe {
        let limit: unsafe extern "C" fn() -> c_int = mem::transmute(RECURSION_LIMIT.load(Ordering::Relaxed));
        depth >= limit() && field::<c_int>(state, HEADROOM_3_10) == 0
    }
}

/// Does the same on 3.11, where the state has the remaining depth.
///
/// # Safety
/// The state is this thread's.
#[inline(always)]
unsafe fn is_refused_3_11(state: u64) -> bool {
    // SAFETY: passed on to the caller.
    unsafe { field::<c_int>(state, REMAINING_3_11) <= 0 && field::<c_int>(state, HEADROOM_3_11) == 0 }
}
