//! The state that each thread keeps between captures, and the pool of states.
//!
//! A state is mapped directly from the kernel, because a capture may run inside an allocator, and is never
//! unmapped: when its thread ends, another thread reuses it, with warm caches. The list of all states only grows,
//! so that it can be read without a lock. Most of a state is never accessed, and so never backed by memory.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use stackweave_store::thread_words::UNWIND_STATE;

use crate::platform::arch;
use crate::platform::last_stack::LastNativeStack;
use crate::platform::loader;
use crate::platform::lookup::Lookup;
use crate::platform::rule_cache::RuleCache;
use crate::platform::stack_memory::KnownStacks;
use crate::platform::thread_counters::UnwindCounters;
use crate::platform::thread_memory::MemorySlot;
use crate::platform::unload_watch::{self, Watch};
use crate::stats::UnwindStats;

/// A state: the part that other threads may read, and the part of the thread that claimed it.
#[repr(C)]
pub(crate) struct ThreadState {
    pub(crate) counters: UnwindCounters,
    /// The thread control block of the thread that claimed this state; 0: free.
    owner: AtomicU64,
    next: AtomicPtr<ThreadState>,
    /// The stack pointer of the capture that is using this state; 0: none.
    pub(crate) busy: AtomicU64,
    pub(crate) slot: MemorySlot,
    pub(crate) own: UnsafeCell<CaptureState>,
}

/// The part that only the capture that has set `busy` may access.
#[repr(C)]
pub(crate) struct CaptureState {
    pub(crate) watch: Watch,
    pub(crate) stacks: KnownStacks,
    pub(crate) lookup: Lookup,
    pub(crate) last: LastNativeStack,
    pub(crate) cache: RuleCache,
}

static ALL: AtomicPtr<ThreadState> = AtomicPtr::new(ptr::null_mut());

/// The thread-specific key whose destructor releases a thread's state; 0: not created yet.
static KEY: AtomicU32 = AtomicU32::new(0);

impl ThreadState {
    /// Returns this thread's state, if it has one.
    #[inline(always)]
    pub(crate) fn current() -> Option<&'static Self> {
        let state = ptr::with_exposed_provenance::<Self>(UNWIND_STATE.get());
        // SAFETY: the word is 0 or the address of a state, and states are never unmapped.
        unsafe { state.as_ref() }
    }

    /// Attaches a state to this thread; `None` if the kernel has no memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn attach() -> Option<&'static Self> {
        let state = Self::claim()?;
        UNWIND_STATE.set(ptr::from_ref(state).expose_provenance());
        release_at_exit(state);
        Some(state)
    }

    /// Claims a free state, or maps a new one.
    pub(crate) fn claim() -> Option<&'static Self> {
        let me = arch::thread_control_block();
        let claimed =
            all().find(|state| state.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok());
        let state = match claimed {
            Some(state) => state,
            None => Self::map(me)?,
        };
        // SAFETY: claimed, so no other thread accesses it. A new state is all zeros, which is valid for every
        // field not written here; a reused one is consistent.
        let own = unsafe { &mut *state.own.get() };
        own.stacks = KnownStacks::new();
        if claimed.is_none() {
            own.watch = first_watch();
        }
        Some(state)
    }

    /// Releases a claimed state for other threads.
    pub(crate) fn release(&self) {
        if self.busy.swap(0, Ordering::Relaxed) != 0 {
            // SAFETY: the thread that was capturing does not exist in this process, or has left the capture.
            unsafe { (*self.own.get()).last.clear() };
        }
        self.slot.busy.store(0, Ordering::Relaxed);
        self.owner.store(0, Ordering::Release);
    }

    /// Returns the thread control block of the thread that has this state; 0: none.
    pub(crate) fn owner(&self) -> u64 {
        self.owner.load(Ordering::Acquire)
    }

    fn map(owner: u64) -> Option<&'static Self> {
        let mapped = map_zeros(size_of::<Self>())?;
        let state = mapped.cast::<Self>();
        // SAFETY: zeroed memory of the right size and alignment, not yet shared. `Lookup` and `LastNativeStack` have
        // initial values other than zeros.
        let state = unsafe {
            (&raw mut (*(*state).own.get()).lookup).write(Lookup::new());
            (*(*state).own.get()).last.clear();
            &*state
        };
        state.owner.store(owner, Ordering::Relaxed);
        let mut first = ALL.load(Ordering::Relaxed);
        loop {
            state.next.store(first, Ordering::Relaxed);
            match ALL.compare_exchange_weak(first, mapped.cast(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(state),
                Err(now) => first = now,
            }
        }
    }
}

/// Returns the watch of a new state. The process's first one queries the loader's kind; later ones may be in a
/// signal handler.
fn first_watch() -> Watch {
    static IS_LOADER_KNOWN: AtomicBool = AtomicBool::new(false);
    if IS_LOADER_KNOWN.load(Ordering::Acquire) {
        return Watch::without_query();
    }
    loader::prepare();
    let watch = Watch::new();
    IS_LOADER_KNOWN.store(true, Ordering::Release);
    watch
}

/// Adds up the counters of all threads.
pub(crate) fn stats() -> UnwindStats {
    let mut total = UnwindStats::none(unload_watch::kind());
    all().for_each(|state| state.counters.add_to(&mut total));
    total
}

/// Maps fresh memory from the kernel; `None` if it has none.
pub(crate) fn map_zeros(bytes: usize) -> Option<*mut c_void> {
    let (access, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a fresh anonymous mapping.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    (mapped != libc::MAP_FAILED).then_some(mapped)
}

pub(crate) fn all() -> impl Iterator<Item = &'static ThreadState> {
    // SAFETY: the list only grows, and states are never unmapped.
    let follow = |state: *mut ThreadState| unsafe { state.as_ref() };
    core::iter::successors(follow(ALL.load(Ordering::Acquire)), move |state| follow(state.next.load(Ordering::Acquire)))
}

/// Arranges that `state` is released when this thread ends.
fn release_at_exit(state: &'static ThreadState) {
    unsafe extern "C" fn release_state(state: *mut c_void) {
        UNWIND_STATE.set(0);
        // SAFETY: the value set below, of a state that is never unmapped.
        unsafe { &*state.cast::<ThreadState>() }.release();
    }
    if let Some(key) = exit_key(release_state) {
        // SAFETY: a key that was created and is never deleted.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(state).cast()) };
    }
}

/// Returns the key with this destructor, created once. If two threads create one concurrently, the first is used.
fn exit_key(destructor: unsafe extern "C" fn(*mut c_void)) -> Option<libc::pthread_key_t> {
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return Some(known - 1);
    }
    let mut key = 0;
    // SAFETY: the destructor has the right signature, and `key` is a local variable.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            free_others_in_forked_child();
            Some(key)
        }
        Err(first) => {
            // SAFETY: just created, and not used.
            unsafe { libc::pthread_key_delete(key) };
            Some(first - 1)
        }
    }
}

/// Arranges that a forked child, which has one thread, frees the states of all others.
fn free_others_in_forked_child() {
    unsafe extern "C" fn in_child() {
        let own = UNWIND_STATE.get();
        all().filter(|state| ptr::from_ref(*state).addr() != own).for_each(ThreadState::release);
    }
    // SAFETY: the handler only stores to states, which are never unmapped.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}
