//! Checks whether the C stack has room for calls that would not use it without a hook.
//!
//! On 3.11 Python calls use no C stack, unless there is a frame evaluation hook. So the hook leaves a part of each
//! thread's stack for native code below.
//!
//! Hot file: no allocation, no lock; a few instructions, except for the first call on a thread.

use core::mem;

use stackweave_store::thread_words::{STACK_FLOOR, STACK_LENGTH};

use super::thread_memory::stack_pointer;

/// The largest part that is left unused; of smaller stacks, half is.
const LARGEST_RESERVE: usize = 2 << 20;

/// Returns whether a call may use more of this thread's stack. On a stack that is not the thread's own the limit is
/// unknown: it may.
#[inline(always)]
pub(super) fn has_room() -> bool {
    stack_pointer().wrapping_sub(STACK_FLOOR.get() as u64) < STACK_LENGTH.get() as u64 || check_slow()
}

#[cold]
#[inline(never)]
fn check_slow() -> bool {
    if STACK_LENGTH.get() == 0 {
        let (floor, length) = measure();
        STACK_FLOOR.set(floor);
        STACK_LENGTH.set(length);
    }
    let reserve = STACK_LENGTH.get().min(LARGEST_RESERVE) as u64;
    let below = (STACK_FLOOR.get() as u64).wrapping_sub(stack_pointer());
    below == 0 || below > reserve
}

/// Returns the part of this thread's stack that may be used: its end, and its length.
fn measure() -> (usize, usize) {
    // SAFETY: the attributes are filled in by the call, and destroyed if it succeeds.
    let (lowest, size) = unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return (0, usize::MAX);
        }
        let (mut lowest, mut size) = (core::ptr::null_mut(), 0);
        libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        (lowest as usize, size)
    };
    let reserve = (size / 2).min(LARGEST_RESERVE);
    (lowest + reserve, size - reserve)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: usize = 1024;

    /// Returns how deep it gets before there is no more room.
    #[inline(never)]
    fn descend(depth: usize) -> usize {
        let step = core::hint::black_box([depth; STEP / size_of::<usize>()]);
        if has_room() { descend(step[0] + 1) } else { step[0] }
    }

    #[test]
    fn a_part_of_the_stack_is_left_unused() {
        for (size, reserve) in [(512 << 10, 256 << 10), (16 << 20, LARGEST_RESERVE)] {
            let thread = std::thread::Builder::new().stack_size(size);
            let depth = thread.spawn(|| descend(0)).unwrap().join().unwrap();
            let usable = size - reserve;
            assert!(depth * STEP < usable && depth * STEP > usable / 8, "{depth} of {usable}");
        }
    }

    #[test]
    fn a_stack_that_is_not_the_threads_own_has_no_limit() {
        assert!(has_room());
        let other = STACK_FLOOR.get() - 2 * LARGEST_RESERVE;
        let length = STACK_LENGTH.get();
        STACK_FLOOR.set(stack_pointer() as usize + 64 * LARGEST_RESERVE);
        assert!(has_room(), "far below the known stack");
        STACK_FLOOR.set(other.saturating_sub(length));
        assert!(has_room(), "above the known stack");
    }
}
