//! Memory that the layer above keeps per thread between captures.
//!
//! It belongs to the thread's state, so it is found by the same thread-local word and passed on with the state
//! when the thread ends. A signal handler that interrupts its user gets the memory of a spare state.
//!
//! Hot file: no allocation, no lock, async-signal-safe once warm.

use core::fmt;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence, fence};

use crate::platform::capture::{stack_pointer, was_abandoned};
use crate::platform::thread_state::{ThreadState, all, map_zeros};

/// The part of a thread's state for the layer above.
#[derive(Debug)]
pub(crate) struct MemorySlot {
    memory: AtomicPtr<u8>,
    /// The stack pointer of the current user of the memory; 0: none.
    pub(crate) busy: AtomicU64,
    /// Number of leases that have ended.
    ended: AtomicU64,
}

/// Exclusive use of this thread's memory, until it is dropped.
pub struct ThreadMemory {
    state: &'static ThreadState,
    memory: NonNull<u8>,
    /// The state, if it is a spare one that returns to the pool afterwards. (Not a flag: a byte among words would
    /// stall copies of the struct.)
    spare: Option<&'static ThreadState>,
}

impl ThreadMemory {
    /// Leases this thread's memory of `bytes`, which must be the same in all calls: zeros at first, then what the
    /// last user stored. `None` if the kernel has no memory.
    #[inline(always)]
    pub fn lease(bytes: usize) -> Option<Self> {
        if let Some(state) = ThreadState::current()
            && state.slot.busy.load(Ordering::Relaxed) == 0
            && let Some(memory) = NonNull::new(state.slot.memory.load(Ordering::Relaxed))
        {
            return Some(Self::take(state, memory, None));
        }
        Self::lease_slowly(bytes)
    }

    /// Returns the memory, which is page-aligned.
    #[inline(always)]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.memory
    }

    /// Waits until every lease of another thread that began before this call has ended. Not for signal handlers.
    pub fn wait_for_others() {
        order_all_threads();
        let own = crate::platform::arch::thread_control_block();
        for state in all().filter(|state| state.owner() != own) {
            let ended = state.slot.ended.load(Ordering::Acquire);
            while state.slot.busy.load(Ordering::Acquire) != 0
                && state.slot.ended.load(Ordering::Acquire) == ended
                && state.owner() != 0
            {
                std::thread::yield_now();
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn lease_slowly(bytes: usize) -> Option<Self> {
        let own = ThreadState::current().or_else(ThreadState::attach)?;
        let is_spare = own.slot.busy.load(Ordering::Relaxed) != 0 && !was_abandoned(own, &own.slot.busy);
        let state = if is_spare { ThreadState::claim()? } else { own };
        if state.slot.memory.load(Ordering::Relaxed).is_null() {
            state.slot.memory.store(map_zeros(bytes).unwrap_or(ptr::null_mut()).cast(), Ordering::Relaxed);
        }
        let Some(memory) = NonNull::new(state.slot.memory.load(Ordering::Relaxed)) else {
            if is_spare {
                state.release();
            }
            return None;
        };
        Some(Self::take(state, memory, is_spare.then_some(state)))
    }

    #[inline(always)]
    fn take(state: &'static ThreadState, memory: NonNull<u8>, spare: Option<&'static ThreadState>) -> Self {
        state.slot.busy.store(stack_pointer(), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self { state, memory, spare }
    }
}

impl Drop for ThreadMemory {
    #[inline(always)]
    fn drop(&mut self) {
        let slot = &self.state.slot;
        slot.ended.store(slot.ended.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        slot.busy.store(0, Ordering::Release);
        if let Some(spare) = self.spare {
            spare.release();
        }
    }
}

impl fmt::Debug for ThreadMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadMemory").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// Orders memory accesses with all threads of the process: after this, this thread sees what they did before, and
/// their next accesses see what this thread stored before. So leases, which are frequent, need no fence of their
/// own; calls of this function are rare.
fn order_all_threads() {
    const REGISTER: i32 = 1 << 4;
    const EXPEDITED: i32 = 1 << 3;
    const GLOBAL: i32 = 1;
    fence(Ordering::SeqCst);
    // SAFETY: the call takes only numbers.
    let membarrier = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    let ordered = (membarrier(REGISTER) && membarrier(EXPEDITED)) || membarrier(GLOBAL);
    if !ordered {
        // The kernel does not support it, or a sandbox forbids it: every processor executes a barrier of its own
        // by then.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
