//! Visits the loader's list of loaded objects, by one thread at a time.
//!
//! glibc does not release the lock of that list in a forked child: if another thread held it at the fork, the
//! child's first visit would never end. So Stackweave's threads exclude each other and forks: a fork never happens
//! during a visit. No thread waits forever to begin a visit: it may hold the very lock that the other thread needs
//! to end its visit.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::platform::arch::thread_control_block;
use crate::platform::list_lock;

pub(crate) type ObjectCallback = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// The thread control block of the visiting thread; 0: none.
static VISITOR: AtomicU64 = AtomicU64::new(0);
/// The number of nested visits of that thread: a signal handler may visit during a visit of its thread, as the
/// loader allows.
static NESTED_VISITS: AtomicU32 = AtomicU32::new(0);

/// The number of attempts of a capture. The visiting thread may wait for the loader's lock, which the capturing
/// thread may hold, inside a callback of the loader.
const ATTEMPTS_IN_CAPTURE: u32 = 1_000;
/// The number of other attempts, which take some seconds. Then the visit happens without exclusion.
const MAX_ATTEMPTS: u32 = 20_000;
const PAUSE: core::time::Duration = core::time::Duration::from_micros(100);

/// Calls `visit` for each loaded object, until it returns something other than 0. For captures: returns false,
/// without calling `visit`, if another thread's visit did not end.
///
/// # Safety
/// `visit` may be called with `data`, and does not unwind.
#[must_use]
pub(crate) unsafe fn visit_loaded_objects(visit: ObjectCallback, data: *mut c_void) -> bool {
    exclude_forks();
    if !begin_visit(ATTEMPTS_IN_CAPTURE, std::thread::yield_now) {
        return false;
    }
    // SAFETY: the caller keeps this function's contract, which is the same.
    unsafe { libc::dl_iterate_phdr(Some(visit), data) };
    end_visit();
    true
}

/// Visits the objects, and can wait. Returns false if another thread keeps the list locked: that thread may be
/// waiting for this one.
///
/// # Safety
/// The same as for [`visit_loaded_objects`].
pub(crate) unsafe fn visit_and_wait(visit: ObjectCallback, data: *mut c_void) -> bool {
    exclude_forks();
    begin_visit(MAX_ATTEMPTS, || std::thread::sleep(PAUSE));
    let is_visited = list_lock::with_list(|| {
        // SAFETY: the caller keeps this function's contract, which is the same.
        unsafe { libc::dl_iterate_phdr(Some(visit), data) };
    });
    end_visit();
    is_visited
}

/// Begins a visit of the calling thread. Returns false if another thread's visit did not end within this number of
/// attempts.
fn begin_visit(attempts: u32, wait: impl Fn()) -> bool {
    let me = thread_control_block();
    if VISITOR.load(Ordering::Relaxed) == me {
        NESTED_VISITS.fetch_add(1, Ordering::Relaxed);
        return true;
    }
    for _ in 0..attempts {
        if VISITOR.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        wait();
    }
    false
}

/// Ends the calling thread's visit, if it has one.
fn end_visit() {
    if VISITOR.load(Ordering::Relaxed) != thread_control_block() {
        return;
    }
    if NESTED_VISITS.load(Ordering::Relaxed) != 0 {
        NESTED_VISITS.fetch_sub(1, Ordering::Relaxed);
    } else {
        VISITOR.store(0, Ordering::Release);
    }
}

fn exclude_forks() {
    static IS_ARRANGED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn before_fork() {
        begin_visit(MAX_ATTEMPTS, || std::thread::sleep(PAUSE));
    }
    unsafe extern "C" fn after_fork() {
        end_visit();
    }
    unsafe extern "C" fn in_child() {
        end_visit();
        // End the visit of a thread that the child does not have, for which the fork has not waited.
        if VISITOR.load(Ordering::Relaxed) != thread_control_block() {
            NESTED_VISITS.store(0, Ordering::Relaxed);
            VISITOR.store(0, Ordering::Relaxed);
        }
    }
    if !IS_ARRANGED.load(Ordering::Relaxed) && !IS_ARRANGED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers only access numbers. The forking thread runs them all, and has the same control
        // block in the child.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    }
}
