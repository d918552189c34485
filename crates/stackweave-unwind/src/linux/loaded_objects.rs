//! The loader's list of loaded objects, looked at by one thread at a time.
//!
//! glibc does not free the lock of that list in a forked child: if another thread had it at that moment, the child's
//! first look would never end. So threads of ours take turns, and a fork takes one too: it finds none of them inside. Nobody
//! waits for a turn for ever: who waits may hold the very lock that the other needs to end its turn.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::platform::arch::thread_control_block;
use crate::platform::list_lock;

pub(crate) type Visit = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// The thread control block of the thread whose turn it is; 0: nobody's.
static TURN: AtomicU64 = AtomicU64::new(0);
/// How many turns it has begun inside its first: a signal handler may look while its thread does, as the loader allows.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// A capture waits so often for another's turn to end. Whose turn it is may wait for the loader's lock, which the one who
/// captures may hold: inside of a callback of the loader's.
const SHORT: u32 = 1_000;
/// Others wait so often, which is some seconds, and then go without a turn.
const LONG: u32 = 20_000;
const PAUSE: core::time::Duration = core::time::Duration::from_micros(100);

/// Calls `visit` for each loaded object, until it returns something other than 0. For captures: false if it was not called,
/// since another thread's turn did not end.
///
/// # Safety
/// `visit` may be called with `data`, and does not end by unwinding.
#[must_use]
pub(crate) unsafe fn visit_loaded_objects(visit: Visit, data: *mut c_void) -> bool {
    take_turns_with_forks();
    if !begin_turn(SHORT, std::thread::yield_now) {
        return false;
    }
    // SAFETY: passed on to the caller.
    unsafe { libc::dl_iterate_phdr(Some(visit), data) };
    end_turn();
    true
}

/// The same for who can wait. Returns false if another thread keeps the list locked: it may wait for this one.
///
/// # Safety
/// As for [`visit_loaded_objects`].
pub(crate) unsafe fn visit_patiently(visit: Visit, data: *mut c_void) -> bool {
    take_turns_with_forks();
    begin_turn(LONG, || std::thread::sleep(PAUSE));
    let is_visited = list_lock::with_list(|| {
        // SAFETY: passed on to the caller.
        unsafe { libc::dl_iterate_phdr(Some(visit), data) };
    });
    end_turn();
    is_visited
}

/// Whether it is the calling thread's turn, after so many attempts.
fn begin_turn(attempts: u32, wait: impl Fn()) -> bool {
    let me = thread_control_block();
    if TURN.load(Ordering::Relaxed) == me {
        INSIDE.fetch_add(1, Ordering::Relaxed);
        return true;
    }
    for _ in 0..attempts {
        if TURN.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        wait();
    }
    false
}

/// Ends the calling thread's turn, if it is.
fn end_turn() {
    if TURN.load(Ordering::Relaxed) != thread_control_block() {
        return;
    }
    if INSIDE.load(Ordering::Relaxed) != 0 {
        INSIDE.fetch_sub(1, Ordering::Relaxed);
    } else {
        TURN.store(0, Ordering::Release);
    }
}

fn take_turns_with_forks() {
    static IS_ARRANGED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn before_fork() {
        begin_turn(LONG, || std::thread::sleep(PAUSE));
    }
    unsafe extern "C" fn after_fork() {
        end_turn();
    }
    unsafe extern "C" fn in_child() {
        end_turn();
        // A turn of a thread that the child does not have, which the fork has not waited for.
        if TURN.load(Ordering::Relaxed) != thread_control_block() {
            INSIDE.store(0, Ordering::Relaxed);
            TURN.store(0, Ordering::Relaxed);
        }
    }
    if !IS_ARRANGED.load(Ordering::Relaxed) && !IS_ARRANGED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers only touch numbers. The forking thread runs them all, and has the same control block in
        // the child.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    }
}
