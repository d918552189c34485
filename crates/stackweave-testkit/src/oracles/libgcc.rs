//! libgcc's `_Unwind_Backtrace`.

use std::ffi::{c_int, c_void};

use stackweave_unwind::{Captured, CodeAddress, StackPointer, StopReason};

const NO_REASON: c_int = 0;
const END_OF_STACK: c_int = 5;

unsafe extern "C" {
    fn _Unwind_Backtrace(trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, before_instruction: *mut c_int) -> u64;
    fn _Unwind_GetCFA(context: *mut c_void) -> u64;
    fn _Unwind_FindEnclosingFunction(pc: *mut c_void) -> *mut c_void;
}

struct LibgccWalk<'a> {
    frames: &'a mut [CodeAddress],
    stack_pointers: &'a mut [StackPointer],
    count: usize,
    skip: usize,
    until_exact: bool,
    full: bool,
}

extern "C" fn take_frame(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `walk_stack` passes its own `LibgccWalk`, which nothing else uses meanwhile.
    let walk = unsafe { &mut *walk.cast::<LibgccWalk<'_>>() };
    let mut exact: c_int = 0;
    // SAFETY: libgcc passes a valid context, and `exact` is valid memory for an int.
    let address = unsafe { _Unwind_GetIPInfo(context, &raw mut exact) };
    if walk.until_exact && exact == 0 {
        return NO_REASON;
    }
    walk.until_exact = false;
    if address == 0 {
        return NO_REASON;
    }
    if walk.skip > 0 {
        walk.skip -= 1;
        return NO_REASON;
    }
    let Some(slot) = walk.frames.get_mut(walk.count) else {
        walk.full = true;
        return END_OF_STACK;
    };
    *slot = if exact == 0 { CodeAddress::return_address(address) } else { CodeAddress::instruction_pointer(address) };
    if let Some(slot) = walk.stack_pointers.get_mut(walk.count) {
        // SAFETY: libgcc passes a valid context.
        *slot = StackPointer(unsafe { _Unwind_GetCFA(context) });
    }
    walk.count += 1;
    NO_REASON
}

#[inline(always)]
fn walk_stack(walk: &mut LibgccWalk<'_>) -> Captured {
    // SAFETY: `take_frame` gets the `LibgccWalk` it expects.
    let code = unsafe { _Unwind_Backtrace(take_frame, std::ptr::from_mut(walk).cast()) };
    let stop = match (walk.full, code) {
        (true, _) => StopReason::DepthLimit,
        (false, END_OF_STACK) => StopReason::EndOfStack,
        _ => StopReason::UnsupportedRule,
    };
    Captured { len: walk.count, stop }
}

/// Captures the caller's stack, with the stack pointers of as many frames as `stack_pointers` has room for.
#[inline(never)]
pub fn capture(frames: &mut [CodeAddress], stack_pointers: &mut [StackPointer], skip: usize) -> Captured {
    walk_stack(&mut LibgccWalk { frames, stack_pointers, count: 0, skip: skip + 1, until_exact: false, full: false })
}

/// Captures the interrupted stack in a signal handler; its first frame is exact.
#[inline(never)]
pub fn capture_interrupted(frames: &mut [CodeAddress], skip: usize) -> Captured {
    walk_stack(&mut LibgccWalk { frames, stack_pointers: &mut [], count: 0, skip, until_exact: true, full: false })
}

/// Returns where the function that holds `address` begins, according to its unwind entry; null if it has none.
pub fn function_start(address: CodeAddress) -> u64 {
    let address = std::ptr::with_exposed_provenance_mut(usize::try_from(address.lookup() + 1).unwrap_or(0));
    // SAFETY: any address may be passed; libgcc looks up the byte before it.
    unsafe { _Unwind_FindEnclosingFunction(address) as u64 }
}
