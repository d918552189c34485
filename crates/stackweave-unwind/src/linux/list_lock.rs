//! The loader's locks: finds them, and takes that of its list without waiting forever.
//!
//! glibc holds one recursive lock from the beginning of a `dlopen` to its end, including constructors, and another
//! while its list of modules changes or is visited. Both are in `_rtld_global`, one after the other, shortly
//! before the counter of loads. The second is recognised by its owner while `dl_iterate_phdr` calls back; the
//! first precedes it.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;

use crate::loader_locks::{LoaderLocks, MutexParts};

/// The lock of the list, and the lock of loads; null until they are found.
static LIST: AtomicPtr<MutexParts> = AtomicPtr::new(ptr::null_mut());
static LOAD: AtomicPtr<MutexParts> = AtomicPtr::new(ptr::null_mut());

/// The number of attempts to take the lock, and the time between them: half a second in total.
const ATTEMPTS: u32 = 5_000;
const PAUSE: Duration = Duration::from_micros(100);

/// Returns the locks, if they were found.
pub(super) fn known() -> Option<LoaderLocks> {
    let (load, list) = (LOAD.load(Ordering::Acquire), LIST.load(Ordering::Acquire));
    (!load.is_null() && !list.is_null()).then_some(LoaderLocks { load, list })
}

/// Runs `visit` while holding the lock of the list, which it may take again. Returns false if another thread keeps
/// that lock. If the lock was not found, `visit` itself waits for it.
pub(super) fn with_list(visit: impl FnOnce()) -> bool {
    let list = LIST.load(Ordering::Acquire).cast::<libc::pthread_mutex_t>();
    if list.is_null() {
        visit();
        return true;
    }
    for _ in 0..ATTEMPTS {
        // SAFETY: a recursive mutex of the loader, which is unlocked below.
        if unsafe { libc::pthread_mutex_trylock(list) } == 0 {
            visit();
            // SAFETY: this thread holds it.
            unsafe { libc::pthread_mutex_unlock(list) };
            return true;
        }
        std::thread::sleep(PAUSE);
    }
    false
}

struct LockSearch {
    loads: *const u64,
    first: *const u8,
    found: Option<LoaderLocks>,
}

/// Finds the locks, which precede the counter of loads.
pub(super) fn find(loads: *const u64) {
    // SAFETY: dlsym with a literal name.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_rtld_global".as_ptr()) };
    let mut search = LockSearch { loads, first: global.cast_const().cast(), found: None };
    // SAFETY: the callback has the right signature, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(match_locks), (&raw mut search).cast()) };
    if let Some(found) = search.found {
        LOAD.store(found.load, Ordering::Release);
        LIST.store(found.list, Ordering::Release);
    }
}

unsafe extern "C" fn match_locks(_: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    /// The maximum number of locks between the list's lock and the counter, including the former.
    const AWAY: usize = 3;
    // SAFETY: `find` passes `search`.
    let search = unsafe { &mut *search.cast::<LockSearch>() };
    // SAFETY: no preconditions.
    let me = unsafe { libc::gettid() };
    let parts = |away: usize| {
        let address = search.loads.addr().checked_sub(away * size_of::<libc::pthread_mutex_t>())?;
        let mutex = search.loads.cast::<MutexParts>().with_addr(address);
        // SAFETY: checked to be in `_rtld_global`, which begins at `first` and extends to the counter.
        (address >= search.first.addr()).then(|| unsafe { (mutex.cast_mut(), mutex.read_volatile()) })
    };
    let is_recursive = |parts: &MutexParts| parts.kind == libc::PTHREAD_MUTEX_RECURSIVE;
    for away in 1..=AWAY {
        let (Some((list, ours)), Some((load, before))) = (parts(away), parts(away + 1)) else { return 1 };
        if is_recursive(&ours) && ours.owner == me && is_recursive(&before) {
            search.found = Some(LoaderLocks { load, list });
            return 1;
        }
    }
    1
}
