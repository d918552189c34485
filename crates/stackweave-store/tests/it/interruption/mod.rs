//! Stops a thread in the middle of its work: by a signal at any instruction, and by a fork.

use std::ffi::c_void;

use stackweave_testkit::fixtures::{sw_trap_off, sw_trap_on};
use stackweave_testkit::signals::{SignalStack, with_handlers};

/// Number of instructions, evenly spread, at which work is interrupted.
pub(crate) const INTERRUPTIONS: usize = 64;

const TRAP_FLAG: i64 = 1 << 8;

/// The results of work that was interrupted by the same work.
pub(crate) struct Interrupted<T> {
    pub(crate) outer: Option<T>,
    pub(crate) inner: Option<T>,
    /// Whether the work had enough instructions to be interrupted there.
    pub(crate) was_reached: bool,
    pub(crate) steps: usize,
}

/// Does `work` one instruction at a time. Before the instruction with the number `at`, a handler does it too; the
/// remaining instructions are not stepped.
pub(crate) fn interrupt_at<T>(at: usize, work: impl Fn() -> Option<T>) -> Interrupted<T> {
    let (mut steps, mut inner, mut outer) = (0, None, None);
    let mut on_step = |context: *mut c_void| {
        if steps == at {
            inner = work();
            // SAFETY: the context is that of the handler that runs. Without the flag, no step follows.
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

/// Calls `is_right` in a forked child. Returns the child's status: 0 if it returned true.
pub(crate) fn in_forked_child(is_right: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child only calls the function and exits; the parent waits for it.
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
