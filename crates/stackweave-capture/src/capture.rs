//! One capture: the native walk, the sources' walks, the weave, the id.
//!
//! Hot file: no allocation, no lock, async-signal-safe once warm.

use core::ffi::c_void;

use stackweave_core::{RawFrame, SourceStop, StackId, StackPointer, StopReason};
use stackweave_store::StackTable;
use stackweave_unwind::Captured;

use crate::buffers::{Counters, DEPTH, Lent, Own};
use crate::request::{Capture, Request, Start};
use crate::sources::{self, Walked};
use crate::weave::{Interpreted, Native, weave};

static STACKS: StackTable = StackTable::new();

/// How many native frames a start may leave out, before a walk with a small limit is done again without one.
const MOST_LEFT_OUT: usize = 64;

/// What is captured without memory to capture into.
#[cold]
fn nothing() -> Capture {
    let is_unsupported = stackweave_unwind::capture(&mut [], 0).stop == StopReason::UnsupportedPlatform;
    let native_stop = if is_unsupported { StopReason::UnsupportedPlatform } else { StopReason::BadMemory };
    Capture { stack: Some(StackId::EMPTY), native_stop, source_stop: SourceStop::NoMemory, is_cut: false }
}

/// All stacks captured in this process.
pub fn stacks() -> &'static StackTable {
    &STACKS
}

/// The id of a stack whose frames were obtained in another way, innermost first.
pub fn intern(frames: &[RawFrame]) -> Option<StackId> {
    STACKS.intern(frames)
}

/// Captures the calling thread's stack: native frames and those of every registered source, woven, as an id.
///
/// Once a thread is warm, this neither allocates nor locks, and is async-signal-safe if the sources are.
#[inline(never)]
pub fn capture(request: &Request) -> Capture {
    let Some(mut lent) = Lent::take() else { return nothing() };
    let mut room = room_for(request);
    loop {
        let own = lent.own();
        let walked = sources::walk(request, own, room, false);
        let native = if request.native {
            // The function that this is inlined into, the first frame, is left out.
            stackweave_unwind::capture_with_stack_pointers(
                &mut own.addresses[..room],
                &mut own.stack_pointers[..room],
                1,
            )
        } else {
            NOT_ASKED
        };
        if let Some(capture) = own.repeated.find(request, &walked, native) {
            count(&lent, walked);
            return capture;
        }
        own.repeated.forget();
        match finish(request, &mut lent, room, walked, native) {
            Some(capture) => {
                lent.own().repeated.keep(request, &walked, native, capture);
                return capture;
            }
            None => room = DEPTH,
        }
    }
}

/// Captures the stack that a signal interrupted, from its handler.
///
/// # Safety
/// `context` points to a `ucontext_t` as a signal handler gets it as its third argument, and the handler runs on the
/// thread that it interrupted.
pub unsafe fn capture_from_context(context: *const c_void, request: &Request) -> Capture {
    let Some(mut lent) = Lent::take() else { return nothing() };
    let mut room = room_for(request);
    loop {
        let own = lent.own();
        own.repeated.forget();
        let walked = sources::walk(request, own, room, true);
        let native = if request.native {
            let (addresses, stack_pointers) = (&mut own.addresses[..room], &mut own.stack_pointers[..room]);
            // SAFETY: passed on to the caller.
            unsafe { stackweave_unwind::capture_from_context(context, addresses, Some(stack_pointers), 0) }
        } else {
            NOT_ASKED
        };
        match finish(request, &mut lent, room, walked, native) {
            Some(capture) => return capture,
            None => room = DEPTH,
        }
    }
}

const NOT_ASKED: Captured = Captured { len: 0, stop: StopReason::EndOfStack };

/// How many frames of each kind are walked.
#[inline(always)]
fn room_for(request: &Request) -> usize {
    request.skip.saturating_add(request.limit).saturating_add(MOST_LEFT_OUT).min(DEPTH)
}

/// Weaves, cuts, interns and counts. `None`: too little room was given to the walks.
#[inline(always)]
fn finish(request: &Request, lent: &mut Lent, room: usize, walked: Walked, native: Captured) -> Option<Capture> {
    let wanted = request.skip.saturating_add(request.limit);
    let own = lent.own();
    let (len, left_out) = woven(request, own, walked, native);
    // Where the native stack ends too early, frames of an interpreter stand too close together.
    let is_short = native.stop == StopReason::DepthLimit && native.len - left_out < wanted
        || walked.stop == SourceStop::DepthLimit && len < wanted;
    if is_short && room < DEPTH {
        return None;
    }
    let end = wanted.min(len);
    let stack = own.last.intern(&STACKS, request.skip.min(end), end);
    let is_cut = len > wanted;
    count(lent, walked);
    Some(Capture { stack, native_stop: native.stop, source_stop: walked.stop, is_cut })
}

#[inline(always)]
fn count(lent: &Lent, walked: Walked) {
    let counters = lent.counters();
    Counters::count(&counters.captures);
    Counters::count(&counters.source_stops[walked.stop as usize]);
}

/// Weaves what was walked, and says how many frames that makes, and how many native ones the start leaves out.
#[inline(always)]
fn woven(request: &Request, own: &mut Own, walked: Walked, native: Captured) -> (usize, usize) {
    if walked.is_woven {
        return (walked.len, 0);
    }
    let interpreted = Interpreted { frames: &own.frames[..walked.len], activations: &own.activations[..walked.len] };
    let native = Native {
        addresses: &own.addresses[..native.len],
        stack_pointers: &own.stack_pointers[..native.len],
        is_whole: native.stop == StopReason::EndOfStack,
    };
    let first = first_native(&request.start, &native, interpreted.activations);
    (weave(native.from(first), interpreted, own.last.next()), first)
}

/// Which native frame the stack starts with.
#[inline(always)]
fn first_native(start: &Start, native: &Native<'_>, activations: &[StackPointer]) -> usize {
    match start {
        Start::Caller => 0,
        Start::OutsideOf(range) => {
            native.addresses.iter().take_while(|address| range.contains(&address.lookup())).count()
        }
        Start::CallerOf(place) => native.runner_of(*place, 0).map_or(0, |index| index + 1),
        Start::PythonCaller => {
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

    /// How many of three native frames, at 0x100, 0x200 and 0x300, are left out.
    fn left_out(is_whole: bool, activations: &[u64]) -> usize {
        let addresses = [1, 2, 3].map(CodeAddress::return_address);
        let stack_pointers = [0x100, 0x200, 0x300].map(StackPointer);
        let native = Native { addresses: &addresses, stack_pointers: &stack_pointers, is_whole };
        let activations: Vec<_> = activations.iter().copied().map(StackPointer).collect();
        first_native(&Start::PythonCaller, &native, &activations)
    }

    #[test]
    fn native_frames_inside_the_innermost_python_frame_are_left_out() {
        assert_eq!(left_out(true, &[0x210, 0x310]), 1);
        assert_eq!(left_out(true, &[0, 0x310]), 2);
        assert_eq!(left_out(true, &[]), 0);
    }

    #[test]
    fn a_native_stack_cut_inside_the_innermost_python_frame_is_left_out() {
        assert_eq!(left_out(false, &[0x210, 0x900]), 1);
        assert_eq!(left_out(false, &[0x900]), 3);
    }

    #[test]
    fn a_native_stack_that_runs_no_python_is_kept() {
        assert_eq!(left_out(true, &[0x50]), 0);
        assert_eq!(left_out(false, &[0x50]), 0);
    }
}
