//! The doorbells of all writers. A signal handler can ring them, because they are reused and never freed.
//!
//! Async-signal-safe, except [`lease`].

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::fork;
use super::futex::Doorbell;

static FIRST: AtomicPtr<DoorbellSlot> = AtomicPtr::new(ptr::null_mut());

/// A doorbell and its owner.
#[derive(Debug)]
pub(super) struct DoorbellSlot {
    pub(super) doorbell: Doorbell,
    /// The generation of the process that owns it; 0 for none.
    generation: AtomicU64,
    /// The owner's process id: a child of `vfork` shares this memory, and is another process.
    pid: AtomicU32,
    /// Whether its writer handles signals.
    handles_signals: AtomicBool,
    next: *mut DoorbellSlot,
}

// SAFETY: `next` does not change once the slot is in the list; all else is atomic.
unsafe impl Sync for DoorbellSlot {}
// SAFETY: as above.
unsafe impl Send for DoorbellSlot {}

impl DoorbellSlot {
    /// Releases the slot. A late ring wakes its next owner, which has no effect.
    pub(super) fn release(&self) {
        self.handles_signals.store(false, Ordering::SeqCst);
        self.generation.store(0, Ordering::SeqCst);
    }

    /// Marks that its writer handles signals.
    pub(super) fn handle_signals_here(&self) {
        self.handles_signals.store(true, Ordering::SeqCst);
    }

    pub(super) fn handles_signals(&self) -> bool {
        self.handles_signals.load(Ordering::SeqCst)
    }
}

/// Returns a slot for a writer of this process: one of a parent of this process if there is one.
pub(super) fn lease() -> &'static DoorbellSlot {
    let own = fork::generation();
    let take = |slot: &&DoorbellSlot| {
        let owner = slot.generation.load(Ordering::SeqCst);
        owner != own && slot.generation.compare_exchange(owner, own, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    };
    let slot = slots().find(take).unwrap_or_else(|| add(own));
    slot.handles_signals.store(false, Ordering::SeqCst);
    slot.pid.store(std::process::id(), Ordering::SeqCst);
    slot
}

fn add(generation: u64) -> &'static DoorbellSlot {
    let slot = Box::into_raw(Box::new(DoorbellSlot {
        doorbell: Doorbell::new(),
        generation: AtomicU64::new(generation),
        pid: AtomicU32::new(0),
        handles_signals: AtomicBool::new(false),
        next: ptr::null_mut(),
    }));
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        // SAFETY: no other code has it before the exchange.
        unsafe { (*slot).next = first };
        match FIRST.compare_exchange_weak(first, slot, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: slots are leaked.
            Ok(_) => return unsafe { &*slot },
            Err(now) => first = now,
        }
    }
}

fn slots() -> impl Iterator<Item = &'static DoorbellSlot> {
    // SAFETY: slots are leaked, and their links do not change.
    let mut next = unsafe { FIRST.load(Ordering::Acquire).as_ref() };
    std::iter::from_fn(move || {
        let slot = next?;
        // SAFETY: as above.
        next = unsafe { slot.next.as_ref() };
        Some(slot)
    })
}

/// Returns the slots of writers that handle signals of this process.
fn handling_signals() -> impl Iterator<Item = &'static DoorbellSlot> {
    let (generation, pid) = (fork::generation(), std::process::id());
    slots().filter(move |slot| {
        slot.handles_signals()
            && slot.generation.load(Ordering::SeqCst) == generation
            && slot.pid.load(Ordering::SeqCst) == pid
    })
}

/// Returns whether a writer handles signals of this process.
pub(super) fn any_handles_signals() -> bool {
    handling_signals().next().is_some()
}

/// Rings for all writers that handle signals of this process.
pub(super) fn ring_all() {
    handling_signals().for_each(|slot| slot.doorbell.ring());
}
