//! One capture: the native walk, the walks of the sources, the weave, the id.
//!
//! Hot file: no allocation, no lock, async-signal-safe once warm.

use core::ffi::c_void;

use stackweave_core::{RawFrame, SourceStop, StackId, StackPointer, StopReason};
use stackweave_store::StackTable;
use stackweave_unwind::{Captured, StackMark};

use crate::buffers::{CaptureBuffers, CaptureCounters, DEPTH, LentBuffers};
use crate::known_captures::CaptureKey;
use crate::request::{Capture, CaptureRequest, CaptureStart};
use crate::sources::{self, WalkedSources};
use crate::weave::{InterpretedFrames, NativeStack, weave};

static STACKS: StackTable = StackTable::new();

/// The number of native frames that a start may omit before a walk with a small limit is repeated without a limit.
const MAX_OMITTED: usize = 64;

/// Returns the result of a capture for which there is no memory.
#[cold]
fn failed_capture() -> Capture {
    let is_unsupported = stackweave_unwind::capture(&mut [], 0).stop == StopReason::UnsupportedPlatform;
    let native_stop = if is_unsupported { StopReason::UnsupportedPlatform } else { StopReason::BadMemory };
    Capture { stack: Some(StackId::EMPTY), native_stop, source_stop: SourceStop::NoMemory, is_cut: false }
}

/// Returns the table of all stacks that were captured in this process.
pub fn stacks() -> &'static StackTable {
    &STACKS
}

/// Returns the id of a stack whose frames were obtained differently, innermost first.
pub fn intern(frames: &[RawFrame]) -> Option<StackId> {
    STACKS.intern(frames)
}

/// Captures the calling thread's stack: native frames and those of every registered source, woven, as an id.
///
/// Once a thread is warm, this neither allocates nor locks, and is async-signal-safe if the sources are.
#[inline(never)]
pub fn capture(request: &CaptureRequest) -> Capture {
    let Some(mut lent) = LentBuffers::take() else { return failed_capture() };
    let mut capacity = walk_capacity(request);
    loop {
        let own = lent.own();
        let walked = sources::walk(request, own, capacity, false);
        // Skip the first frame: the function into which this is inlined.
        let (native, mark) = if request.native { stackweave_unwind::capture_mark(capacity, 1) } else { NOT_REQUESTED };
        let key = CaptureKey::new(request, &walked, native, mark);
        if let Some(key) = key
            && let Some(capture) = own.known.find(key, &walked, native)
        {
            count(&lent, walked);
            return capture;
        }
        let written = if request.native { write_native(own, capacity, native, mark) } else { native };
        match finish(request, &mut lent, capacity, walked, written) {
            Some(capture) => {
                if let Some(key) = key
                    && written == native
                {
                    lent.own().known.keep(key, capture);
                }
                return capture;
            }
            None => capacity = DEPTH,
        }
    }
}

/// Captures the stack that a signal interrupted, from its handler.
///
/// # Safety
/// `context` points to the `ucontext_t` that a signal handler received as its third argument, and the handler runs
/// on the thread that it interrupted.
pub unsafe fn capture_from_context(context: *const c_void, request: &CaptureRequest) -> Capture {
    let Some(mut lent) = LentBuffers::take() else { return failed_capture() };
    let mut capacity = walk_capacity(request);
    loop {
        let own = lent.own();
        let walked = sources::walk(request, own, capacity, true);
        let native = if request.native {
            let (addresses, stack_pointers) = (&mut own.addresses[..capacity], &mut own.stack_pointers[..capacity]);
            // SAFETY: the caller keeps this function's contract, which is the same.
            unsafe { stackweave_unwind::capture_from_context(context, addresses, Some(stack_pointers), 0) }
        } else {
            NOT_REQUESTED.0
        };
        match finish(request, &mut lent, capacity, walked, native) {
            Some(capture) => return capture,
            None => capacity = DEPTH,
        }
    }
}

const NOT_REQUESTED: (Captured, StackMark) =
    (Captured { len: 0, stop: StopReason::EndOfStack }, StackMark { thread_state: 0, number: 0 });

/// Writes the native frames of the capture with this mark to the buffers.
#[inline(always)]
fn write_native(own: &mut CaptureBuffers, capacity: usize, native: Captured, mark: StackMark) -> Captured {
    let (addresses, stack_pointers) = (&mut own.addresses[..native.len], &mut own.stack_pointers[..native.len]);
    if stackweave_unwind::write_last_stack(mark, addresses, stack_pointers, 1) {
        return native;
    }
    // A signal handler has captured meanwhile.
    let (addresses, stack_pointers) = (&mut own.addresses[..capacity], &mut own.stack_pointers[..capacity]);
    stackweave_unwind::capture_with_stack_pointers(addresses, stack_pointers, 1)
}

/// Returns how many frames of each kind are walked.
#[inline(always)]
fn walk_capacity(request: &CaptureRequest) -> usize {
    request.skip.saturating_add(request.limit).saturating_add(MAX_OMITTED).min(DEPTH)
}

/// Weaves, cuts, interns and counts. `None` if the walks had too little capacity.
#[inline(always)]
fn finish(
    request: &CaptureRequest,
    lent: &mut LentBuffers,
    capacity: usize,
    walked: WalkedSources,
    native: Captured,
) -> Option<Capture> {
    let wanted = request.skip.saturating_add(request.limit);
    let own = lent.own();
    let (len, omitted) = weave_frames(request, own, walked, native);
    // Where the native stack ends too early, an interpreter's frames are woven too close together.
    let is_short = native.stop == StopReason::DepthLimit && native.len - omitted < wanted
        || walked.stop == SourceStop::DepthLimit && len < wanted;
    if is_short && capacity < DEPTH {
        return None;
    }
    let end = wanted.min(len);
    let stack = own.last.intern(&STACKS, request.skip.min(end), end);
    let is_cut = len > wanted;
    count(lent, walked);
    Some(Capture { stack, native_stop: native.stop, source_stop: walked.stop, is_cut })
}

#[inline(always)]
fn count(lent: &LentBuffers, walked: WalkedSources) {
    let counters = lent.counters();
    CaptureCounters::count(&counters.captures);
    CaptureCounters::count(&counters.source_stops[walked.stop as usize]);
}

/// Weaves the walked frames. Returns the number of woven frames, and how many native frames the start omits.
#[inline(always)]
fn weave_frames(
    request: &CaptureRequest,
    own: &mut CaptureBuffers,
    walked: WalkedSources,
    native: Captured,
) -> (usize, usize) {
    if walked.is_woven {
        return (walked.len, 0);
    }
    let interpreted =
        InterpretedFrames { frames: &own.frames[..walked.len], activations: &own.activations[..walked.len] };
    let native = NativeStack {
        addresses: &own.addresses[..native.len],
        stack_pointers: &own.stack_pointers[..native.len],
        is_complete: native.stop == StopReason::EndOfStack,
    };
    let first = first_native(&request.start, &native, interpreted.activations);
    (weave(native.from(first), interpreted, own.last.next()), first)
}

/// Returns the index of the native frame with which the stack starts.
#[inline(always)]
fn first_native(start: &CaptureStart, native: &NativeStack<'_>, activations: &[StackPointer]) -> usize {
    match start {
        CaptureStart::Caller => 0,
        CaptureStart::OutsideOf(range) => {
            native.addresses.iter().take_while(|address| range.contains(&address.lookup())).count()
        }
        CaptureStart::CallerOf(place) => native.runner_of(*place, 0).map_or(0, |index| index + 1),
        CaptureStart::PythonCaller => {
            let innermost = activations.iter().find(|activation| activation.0 != 0);
            innermost
                .map_or(0, |innermost| native.runner_of(*innermost, 0).unwrap_or_else(|| native.inside(*innermost)))
        }
    }
}

#[cfg(test)]
mod tests {
    use stackweave_core::CodeAddress;

    use super::*;

    /// Returns how many of three native frames, at 0x100, 0x200 and 0x300, are omitted.
    fn omitted(is_complete: bool, activations: &[u64]) -> usize {
        let addresses = [1, 2, 3].map(CodeAddress::return_address);
        let stack_pointers = [0x100, 0x200, 0x300].map(StackPointer);
        let native = NativeStack { addresses: &addresses, stack_pointers: &stack_pointers, is_complete };
        let activations: Vec<_> = activations.iter().copied().map(StackPointer).collect();
        first_native(&CaptureStart::PythonCaller, &native, &activations)
    }

    #[test]
    fn native_frames_inside_the_innermost_python_frame_are_omitted() {
        assert_eq!(omitted(true, &[0x210, 0x310]), 1);
        assert_eq!(omitted(true, &[0, 0x310]), 2);
        assert_eq!(omitted(true, &[]), 0);
    }

    #[test]
    fn a_native_stack_cut_inside_the_innermost_python_frame_is_omitted() {
        assert_eq!(omitted(false, &[0x210, 0x900]), 1);
        assert_eq!(omitted(false, &[0x900]), 3);
    }

    #[test]
    fn a_native_stack_that_runs_no_python_is_kept() {
        assert_eq!(omitted(true, &[0x50]), 0);
        assert_eq!(omitted(false, &[0x50]), 0);
    }
}
