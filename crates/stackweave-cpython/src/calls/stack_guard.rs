//! Whether the C stack has room for calls that would not need it without a hook.
//!
//! On 3.11 Python calls take no C stack, unless there is a frame evaluation hook. So the hook leaves a part of each
//! thread's stack alone, for what native code below may need.
//!
//! Hot file: no allocation, no lock; a few instructions, but for the first time on a thread.

use core::mem;

use super::thread_memory::{set_stack, stack, stack_pointer};

/// What is left alone at most; of smaller stacks, half.
const LARGEST_RESERVE: u64 = 2 << 20;

/// Whether a call may use more of this thread's stack. On a stack that is not the thread's own nobody can tell: it may.
#[inline(always)]
pub(super) fn has_room() -> bool {
    let [floor, length] = stack();
    stack_pointer().wrapping_sub(floor) < length || look()
}

#[cold]
#[inline(never)]
fn look() -> bool {
    let [mut floor, mut length] = stack();
    if length == 0 {
        [floor, length] = measure();
        set_stack([floor, length]);
    }
    let reserve = length.min(LARGEST_RESERVE);
    let below = floor.wrapping_sub(stack_pointer());
    below == 0 || below > reserve
}

/// The part of this thread's stack that may be used: where it ends, and how long it is.
fn measure() -> [u64; 2] {
    // SAFETY: the attributes are filled in by the call, and destroyed if it did so.
    let (lowest, size) = unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return [0, u64::MAX];
        }
        let (mut lowest, mut size) = (core::ptr::null_mut(), 0);
        libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        (lowest as u64, size as u64)
    };
    let reserve = (size / 2).min(LARGEST_RESERVE);
    [lowest + reserve, size - reserve]
}
