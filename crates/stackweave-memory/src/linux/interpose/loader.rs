//! The loader's counter of loads, and its two locks.
//!
//! glibc holds one recursive lock from the begin of a `dlopen` to its end, constructors included, and another while its list of
//! modules changes or is walked: `stackweave_unwind::loader_locks` finds both.
//!
//! Who has the first finds every module bound, but for those that its own thread is loading. In a hook they are only
//! tried: a hook never waits for the loader.

use core::ptr;

use stackweave_unwind::{LoaderLocks, MutexParts};

/// What is known of the loader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loader {
    /// Changes with every load. Null: not found.
    pub(super) loads: *const u64,
    locks: Option<LoaderLocks>,
}

// SAFETY: the pointers are to data of the loader, which never goes away and is for all threads.
unsafe impl Send for Loader {}
// SAFETY: as above.
unsafe impl Sync for Loader {}

impl Loader {
    pub(super) fn find() -> Self {
        let loads = stackweave_unwind::loads_counter().map_or(ptr::null(), |loads| loads.as_ptr().cast_const());
        Self { loads, locks: stackweave_unwind::loader_locks() }
    }

    /// In a forked child: frees the lock of the list if a thread had it that is not there, as glibc does with the other.
    pub(super) fn free_list_in_child(&self) {
        let Some(locks) = self.locks else { return };
        let parts = locks.list;
        // SAFETY: a mutex of the loader, in a process with one thread. The forking thread does not walk the list: it is in
        // `fork`, which no walk of ours calls; so whoever had it is gone.
        unsafe {
            if (*parts).owner != 0 && (*parts).owner != libc::gettid() {
                let MutexParts { kind, spins, .. } = parts.read();
                parts.write(MutexParts { lock: 0, count: 0, owner: 0, users: 0, kind, spins });
            }
        }
    }

    /// Both locks, if nobody has them.
    pub(super) fn try_enter(&self) -> Option<Inside<'_>> {
        let inside = Inside { load: try_lock(self.locks?.load)?, list: Some(try_lock(self.locks?.list)?) };
        // In a signal handler that has interrupted the loader, or in somebody's walk.
        (!inside.list.as_ref().is_some_and(Held::is_inner)).then_some(inside)
    }

    /// Waits until nobody loads modules, as `dlsym` does.
    pub(super) fn wait_for_loads(&self) -> Settled<'_> {
        let Some(locks) = self.locks else {
            let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
            // SAFETY: takes the loader's lock and gives it back; the address is only compared.
            unsafe { libc::dladdr(ptr::from_ref(self).cast(), info.as_mut_ptr()) };
            return Settled { load: None, list: None };
        };
        // SAFETY: a mutex of the loader.
        let is_held = unsafe { libc::pthread_mutex_lock(locks.load.cast()) } == 0;
        Settled { load: is_held.then(|| Held::new(locks.load)), list: Some(locks.list) }
    }

    /// Returns whether this thread holds one of the locks: inside `dlopen` or `dlclose`, or inside a callback of
    /// `dl_iterate_phdr`. Whoever needs the loader waits for this thread then.
    pub(super) fn is_held_here(&self) -> bool {
        let Some(locks) = self.locks else { return false };
        // SAFETY: no preconditions.
        let me = unsafe { libc::gettid() };
        [locks.load, locks.list].into_iter().any(|lock| {
            // SAFETY: a mutex of the loader; the owner is a word, and it is ours only if this thread has put it there.
            unsafe { (&raw const (*lock).owner).read_volatile() == me }
        })
    }
}

/// A lock of the loader that this thread has.
#[derive(Debug)]
pub(super) struct Held<'a>(*mut MutexParts, core::marker::PhantomData<&'a Loader>);

impl Held<'_> {
    fn new(mutex: *mut MutexParts) -> Self {
        Self(mutex, core::marker::PhantomData)
    }

    /// Whether this thread had it before.
    fn is_inner(&self) -> bool {
        // SAFETY: the mutex is the loader's, and held: the count is ours.
        unsafe { (*self.0).count > 1 }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread has it.
        unsafe { libc::pthread_mutex_unlock(self.0.cast()) };
    }
}

fn try_lock<'a>(mutex: *mut MutexParts) -> Option<Held<'a>> {
    if is_being_unlocked(mutex) {
        return None;
    }
    // SAFETY: a mutex of the loader.
    (unsafe { libc::pthread_mutex_trylock(mutex.cast()) } == 0).then(|| Held::new(mutex))
}

/// Returns whether this thread is in the middle of unlocking, which a signal handler that allocates may interrupt: the count is
/// zero, and the owner is not yet. To lock then would succeed, as by the owner, and to unlock would free the lock, which the
/// interrupted thread then frees once more: in between it may be another thread's.
fn is_being_unlocked(mutex: *mut MutexParts) -> bool {
    // SAFETY: a mutex of the loader; the words are its ABI's. They are this thread's own if it is the owner, and it alone
    // makes itself that.
    unsafe {
        (&raw const (*mutex).owner).read_volatile() == libc::gettid()
            && (&raw const (*mutex).count).read_volatile() == 0
    }
}

/// Both locks.
#[derive(Debug)]
pub(super) struct Inside<'a> {
    load: Held<'a>,
    /// None if the locks are not known.
    list: Option<Held<'a>>,
}

impl Inside<'_> {
    /// Whether this thread is loading, and modules may not yet be bound.
    pub(super) fn is_loading(&self) -> bool {
        self.load.is_inner()
    }
}

/// The first lock, or the knowledge that it was free a moment ago.
#[derive(Debug)]
pub(super) struct Settled<'a> {
    load: Option<Held<'a>>,
    list: Option<*mut MutexParts>,
}

impl<'a> Settled<'a> {
    /// Whether this thread is loading, and modules may not yet be bound.
    pub(super) fn is_loading(&self) -> bool {
        self.load.as_ref().is_some_and(Held::is_inner)
    }

    /// The lock of the list.
    pub(super) fn try_list(&self) -> List<'a> {
        let Some(list) = self.list else { return List::Unknown };
        match try_lock(list) {
            None => List::Busy,
            Some(held) if held.is_inner() => List::Walked,
            Some(held) => List::Held(held),
        }
    }
}

/// The lock of the list.
#[derive(Debug)]
pub(super) enum List<'a> {
    #[expect(dead_code, reason = "held until it is dropped")]
    Held(Held<'a>),
    /// It is not known; `dl_iterate_phdr` takes it.
    Unknown,
    /// Another thread has it, for a moment.
    Busy,
    /// This thread is walking the list.
    Walked,
}

#[cfg(test)]
mod tests {
    use core::ffi::{c_int, c_void};

    use super::*;

    /// As a signal handler finds a recursive mutex between the two steps of its thread's unlocking.
    #[test]
    fn a_lock_that_is_being_unlocked_is_not_tried() {
        // SAFETY: a mutex of this test's own, which nobody else has, made recursive before its first use.
        unsafe {
            let mut attributes = core::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
            assert_eq!(libc::pthread_mutexattr_init(attributes.as_mut_ptr()), 0);
            assert_eq!(libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), libc::PTHREAD_MUTEX_RECURSIVE), 0);
            let mutex = Box::into_raw(Box::new(libc::PTHREAD_MUTEX_INITIALIZER));
            assert_eq!(libc::pthread_mutex_init(mutex, attributes.as_ptr()), 0);
            assert_eq!(libc::pthread_mutex_lock(mutex), 0);
            let parts = mutex.cast::<MutexParts>();
            assert_eq!(((*parts).owner, (*parts).count), (libc::gettid(), 1));
            assert!(try_lock(parts).is_some_and(|held| held.is_inner()), "the owner may lock it again");
            (*parts).count = 0;
            assert!(try_lock(parts).is_none());
            assert_eq!(((*parts).lock, (*parts).owner), (1, libc::gettid()), "it is as it was");
            (*parts).count = 1;
            assert_eq!(libc::pthread_mutex_unlock(mutex), 0);
            assert!(try_lock(parts).is_some_and(|held| !held.is_inner()), "free");
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
            let settled = loader.wait_for_loads();
            assert!(loader.is_held_here() && !settled.is_loading());
            meeting.wait();
            meeting.wait();
            drop(settled);
            assert_eq!(other.join().unwrap(), [false, true]);
        });
        assert!(!loader.is_held_here());
        let inside = loader.try_enter().unwrap();
        assert!(!inside.is_loading());
        assert!(loader.try_enter().is_none(), "a thread that walks is not disturbed");
        drop(inside);
        assert!(try_lock(locks.list).is_some());
    }

    #[test]
    fn a_thread_that_visits_the_list_holds_a_lock() {
        unsafe extern "C" fn look(_: *mut libc::dl_phdr_info, _: usize, held: *mut c_void) -> c_int {
            // SAFETY: what is given below.
            let (loader, held) = unsafe { &mut *held.cast::<(Loader, Option<[bool; 2]>)>() };
            let loader = *loader;
            let elsewhere = std::thread::scope(|scope| scope.spawn(|| loader.is_held_here()).join().unwrap());
            *held = Some([loader.is_held_here(), elsewhere]);
            1
        }
        let mut held = (Loader::find(), None::<[bool; 2]>);
        // SAFETY: the callback fits, and `held` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut held).cast()) };
        assert_eq!(held.1, Some([true, false]));
    }
}
