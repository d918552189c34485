//! The loader's list of loaded objects, looked at by one thread at a time.
//!
//! glibc does not free the lock of that list in a forked child: if another thread had it at that moment, the child's
//! first look would never end. So threads of ours take turns, and a fork takes one too: it finds none of them inside.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::platform::arch::thread_control_block;

pub(crate) type Visit = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// The thread control block of the thread whose turn it is; 0: nobody's.
static TURN: AtomicU64 = AtomicU64::new(0);
/// How many turns it has begun inside its first: a signal handler may look while its thread does, as the loader allows.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Calls `visit` for each loaded object, until it returns something other than 0.
///
/// # Safety
/// `visit` may be called with `data`, and does not end by unwinding.
pub(crate) unsafe fn visit_loaded_objects(visit: Visit, data: *mut c_void) {
    take_turns_with_forks();
    begin_turn();
    // SAFETY: passed on to the caller.
    unsafe { libc::dl_iterate_phdr(Some(visit), data) };
    end_turn();
}

fn begin_turn() {
    let me = thread_control_block();
    if TURN.load(Ordering::Relaxed) == me {
        INSIDE.fetch_add(1, Ordering::Relaxed);
        return;
    }
    while TURN.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
}

fn end_turn() {
    if INSIDE.load(Ordering::Relaxed) != 0 {
        INSIDE.fetch_sub(1, Ordering::Relaxed);
    } else {
        TURN.store(0, Ordering::Release);
    }
}

fn take_turns_with_forks() {
    static IS_ARRANGED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn before_fork() {
        begin_turn();
    }
    unsafe extern "C" fn after_fork() {
        end_turn();
    }
    if !IS_ARRANGED.load(Ordering::Relaxed) && !IS_ARRANGED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers only touch numbers. The forking thread runs them all, and has the same control block in
        // the child.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    }
}
