//! Stopping a thread in the middle of what it does: by a signal at any instruction, and by a fork.

use std::ffi::c_void;

use stackweave_testkit::fixtures::{sw_trap_off, sw_trap_on};
use stackweave_testkit::signals::{SignalStack, with_handlers};

/// At how many instructions, evenly spread, something is interrupted.
pub(crate) const PLACES: usize = 64;

const TRAP_FLAG: i64 = 1 << 8;

/// What came of work that was interrupted by the same work.
pub(crate) struct Interrupted<T> {
    pub(crate) outer: Option<T>,
    pub(crate) inner: Option<T>,
    /// Whether there were enough instructions.
    pub(crate) was_reached: bool,
    pub(crate) steps: usize,
}

/// Does `work` one instruction at a time; before the instruction number `at`, a handler does it too, and the rest runs
/// freely.
pub(crate) fn interrupt_at<T>(at: usize, work: impl Fn() -> Option<T>) -> Interrupted<T> {
    let (mut steps, mut inner, mut outer) = (0, None, None);
    let mut on_step = |context: *mut c_void| {
        if steps == at {
            inner = work();
            // SAFETY: the context is that of the handler that runs. Without the flag no step follows.
            unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG };
        }
        steps += 1;
    };
    with_handlers(&[libc::SIGTRAP], SignalStack::Normal, &mut on_step, || {
        // SAFETY: SIGTRAP has a handler now.
        unsafe { sw_trap_on() };
        outer = work();
        // SAFETY: sets a flag of the processor.
        unsafe { sw_trap_off() };
    });
    Interrupted { outer, inner, was_reached: steps > at, steps }
}

/// Asks `is_right` in a forked child. Returns the child's status: 0 if it is.
pub(crate) fn in_forked_child(is_right: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child only asks, and ends; the parent waits for it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            libc::_exit(i32::from(!is_right()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    }
}
