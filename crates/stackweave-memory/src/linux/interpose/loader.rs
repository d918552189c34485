//! The loader's counter of loads, and its two locks.
//!
//! glibc holds one recursive lock during the whole of a `dlopen`, constructors included, and another while its list of
//! modules changes or is walked: `stackweave_unwind::loader_locks` finds both.
//!
//! A thread that holds the first lock finds every module bound, except those that it is loading itself. Hooks only try
//! the locks: a hook never waits for the loader.

use core::ptr;

use stackweave_unwind::{LoaderLocks, MutexParts};

/// Addresses of the loader's data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loader {
    /// The counter that changes with every load. Null: not found.
    pub(super) loads: *const u64,
    locks: Option<LoaderLocks>,
}

// SAFETY: the pointers are to data of the loader, which is never freed, and may be used by all threads.
unsafe impl Send for Loader {}
// SAFETY: as above.
unsafe impl Sync for Loader {}

impl Loader {
    pub(super) fn find() -> Self {
        let loads = stackweave_unwind::loads_counter().map_or(ptr::null(), |loads| loads.as_ptr().cast_const());
        Self { loads, locks: stackweave_unwind::loader_locks() }
    }

    /// Frees the lock of the list in a forked child, if a thread held it that does not exist there. glibc does the same
    /// with the other lock.
    pub(super) fn free_list_in_child(&self) {
        let Some(locks) = self.locks else { return };
        let parts = locks.list;
        // SAFETY: a mutex of the loader, in a process with one thread. The forking thread does not walk the list,
        // because no walk of ours calls `fork`; so the owner does not exist here.
        unsafe {
            if (*parts).owner != 0 && (*parts).owner != libc::gettid() {
                let MutexParts { kind, spins, .. } = parts.read();
                parts.write(MutexParts { lock: 0, count: 0, owner: 0, users: 0, kind, spins });
            }
        }
    }

    /// Takes both locks, if they are free.
    pub(super) fn try_enter(&self) -> Option<LoaderGuard<'_>> {
        let guard = LoaderGuard { load: try_lock(self.locks?.load)?, list: Some(try_lock(self.locks?.list)?) };
        // Not in a signal handler that has interrupted the loader, nor inside a walk of the list.
        (!guard.list.as_ref().is_some_and(LockGuard::is_nested)).then_some(guard)
    }

    /// Waits until no thread loads modules, as `dlsym` does.
    pub(super) fn wait_for_loads(&self) -> LoadGuard<'_> {
        let Some(locks) = self.locks else {
            let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
            // SAFETY: takes the loader's lock and releases it; the address is only compared.
            unsafe { libc::dladdr(ptr::from_ref(self).cast(), info.as_mut_ptr()) };
            return LoadGuard { load: None, list: None };
        };
        // SAFETY: a mutex of the loader.
        let is_held = unsafe { libc::pthread_mutex_lock(locks.load.cast()) } == 0;
        LoadGuard { load: is_held.then(|| LockGuard::new(locks.load)), list: Some(locks.list) }
    }

    /// Returns whether this thread holds one of the locks: inside `dlopen` or `dlclose`, or inside a callback of
    /// `dl_iterate_phdr`. Other threads that need the loader then wait for this thread.
    pub(super) fn is_held_here(&self) -> bool {
        let Some(locks) = self.locks else { return false };
        // SAFETY: no preconditions.
        let me = unsafe { libc::gettid() };
        [locks.load, locks.list].into_iter().any(|lock| {
            // SAFETY: a mutex of the loader; the owner is one word, and it is our id only if this thread has written
            // it.
            unsafe { (&raw const (*lock).owner).read_volatile() == me }
        })
    }
}

/// Releases a lock of the loader when it is dropped.
#[derive(Debug)]
pub(super) struct LockGuard<'a>(*mut MutexParts, core::marker::PhantomData<&'a Loader>);

impl LockGuard<'_> {
    fn new(mutex: *mut MutexParts) -> Self {
        Self(mutex, core::marker::PhantomData)
    }

    /// Returns whether this thread held the lock before.
    fn is_nested(&self) -> bool {
        // SAFETY: the mutex is the loader's, and this thread holds it: no other changes the count.
        unsafe { (*self.0).count > 1 }
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.cast()) };
    }
}

fn try_lock<'a>(mutex: *mut MutexParts) -> Option<LockGuard<'a>> {
    if is_being_unlocked(mutex) {
        return None;
    }
    // SAFETY: a mutex of the loader.
    (unsafe { libc::pthread_mutex_trylock(mutex.cast()) } == 0).then(|| LockGuard::new(mutex))
}

/// Returns whether this thread is in the middle of unlocking, and was interrupted by a signal handler that allocates:
/// the count is zero, and the owner is still set. Locking would succeed then, as for the owner, and unlocking would
/// free the lock, which the interrupted thread frees again: in between, another thread may have taken it.
fn is_being_unlocked(mutex: *mut MutexParts) -> bool {
    // SAFETY: a mutex of the loader; the words are part of its ABI. If this thread is the owner they are its own,
    // because only a thread itself makes itself the owner.
    unsafe {
        (&raw const (*mutex).owner).read_volatile() == libc::gettid()
            && (&raw const (*mutex).count).read_volatile() == 0
    }
}

/// Both locks of the loader.
#[derive(Debug)]
pub(super) struct LoaderGuard<'a> {
    load: LockGuard<'a>,
    /// `None` if the locks are not known.
    list: Option<LockGuard<'a>>,
}

impl LoaderGuard<'_> {
    /// Returns whether this thread is loading, so that modules may not be bound yet.
    pub(super) fn is_loading(&self) -> bool {
        self.load.is_nested()
    }
}

/// The first lock of the loader. If the locks are not known, it was free a moment ago.
#[derive(Debug)]
pub(super) struct LoadGuard<'a> {
    load: Option<LockGuard<'a>>,
    list: Option<*mut MutexParts>,
}

impl<'a> LoadGuard<'a> {
    /// Returns whether this thread is loading, so that modules may not be bound yet.
    pub(super) fn is_loading(&self) -> bool {
        self.load.as_ref().is_some_and(LockGuard::is_nested)
    }

    /// Tries the lock of the list.
    pub(super) fn try_list(&self) -> ListLock<'a> {
        let Some(list) = self.list else { return ListLock::Unknown };
        match try_lock(list) {
            None => ListLock::Busy,
            Some(guard) if guard.is_nested() => ListLock::HeldHere,
            Some(guard) => ListLock::Locked(guard),
        }
    }
}

/// The result of trying the lock of the list.
#[derive(Debug)]
pub(super) enum ListLock<'a> {
    #[expect(dead_code, reason = "held until it is dropped")]
    Locked(LockGuard<'a>),
    /// The lock is not known; `dl_iterate_phdr` takes it.
    Unknown,
    /// Another thread holds it for a moment.
    Busy,
    /// This thread is walking the list.
    HeldHere,
}

#[cfg(test)]
mod tests {
    use core::ffi::{c_int, c_void};

    use super::*;

    /// A signal handler can find a recursive mutex in this state, between the two steps of unlocking.
    #[test]
    fn a_lock_that_its_thread_is_unlocking_is_not_tried() {
        // SAFETY: a mutex that only this test uses, made recursive before its first use.
        unsafe {
            let mut attributes = core::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
            assert_eq!(libc::pthread_mutexattr_init(attributes.as_mut_ptr()), 0);
            assert_eq!(libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), libc::PTHREAD_MUTEX_RECURSIVE), 0);
            let mutex = Box::into_raw(Box::new(libc::PTHREAD_MUTEX_INITIALIZER));
            assert_eq!(libc::pthread_mutex_init(mutex, attributes.as_ptr()), 0);
            assert_eq!(libc::pthread_mutex_lock(mutex), 0);
            let parts = mutex.cast::<MutexParts>();
            assert_eq!(((*parts).owner, (*parts).count), (libc::gettid(), 1));
            assert!(try_lock(parts).is_some_and(|guard| guard.is_nested()), "the owner may lock it again");
            (*parts).count = 0;
            assert!(try_lock(parts).is_none());
            assert_eq!(((*parts).lock, (*parts).owner), (1, libc::gettid()), "it is unchanged");
            (*parts).count = 1;
            assert_eq!(libc::pthread_mutex_unlock(mutex), 0);
            assert!(try_lock(parts).is_some_and(|guard| !guard.is_nested()), "free");
            drop(Box::from_raw(mutex));
        }
    }

    #[test]
    fn the_locks_are_found_and_are_those_of_the_loader() {
        let loader = Loader::find();
        assert!(!loader.loads.is_null());
        let locks = loader.locks.unwrap();
        assert!(!loader.is_held_here());
        let meeting = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            // A thread needs the first lock to begin and to end.
            let other = scope.spawn(|| {
                meeting.wait();
                meeting.wait();
                let locks = &locks;
                let free = [locks.load, locks.list].map(|lock| try_lock(lock).is_some());
                meeting.wait();
                free
            });
            meeting.wait();
            let guard = loader.wait_for_loads();
            assert!(loader.is_held_here() && !guard.is_loading());
            meeting.wait();
            meeting.wait();
            drop(guard);
            assert_eq!(other.join().unwrap(), [false, true]);
        });
        assert!(!loader.is_held_here());
        let guard = loader.try_enter().unwrap();
        assert!(!guard.is_loading());
        assert!(loader.try_enter().is_none(), "a thread that walks the list is left alone");
        drop(guard);
        assert!(try_lock(locks.list).is_some());
    }

    #[test]
    fn a_thread_that_walks_the_list_holds_a_lock() {
        unsafe extern "C" fn query(_: *mut libc::dl_phdr_info, _: usize, held: *mut c_void) -> c_int {
            // SAFETY: what is passed below.
            let (loader, held) = unsafe { &mut *held.cast::<(Loader, Option<[bool; 2]>)>() };
            let loader = *loader;
            let elsewhere = std::thread::scope(|scope| scope.spawn(|| loader.is_held_here()).join().unwrap());
            *held = Some([loader.is_held_here(), elsewhere]);
            1
        }
        let mut held = (Loader::find(), None::<[bool; 2]>);
        // SAFETY: the callback fits, and `held` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(query), (&raw mut held).cast()) };
        assert_eq!(held.1, Some([true, false]));
    }
}
