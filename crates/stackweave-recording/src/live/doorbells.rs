//! The doorbells of all writers, so that a signal handler can ring them: they are never freed, and used again.
//!
//! Async-signal-safe, but for [`lease`].

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::fork;
use super::futex::Doorbell;

static FIRST: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

/// A doorbell, and whose it is.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) doorbell: Doorbell,
    /// The generation of the process that has it; 0: nobody has it.
    generation: AtomicU64,
    /// Its number: a child of `vfork` has this memory, and is another process.
    pid: AtomicU32,
    /// Whether its writer answers signals.
    answers: AtomicBool,
    next: *mut Place,
}

// SAFETY: `next` does not change once the place is known; all else is atomic.
unsafe impl Sync for Place {}
// SAFETY: as above.
unsafe impl Send for Place {}

impl Place {
    /// Nobody has it from now on. A ring that comes late wakes its next owner for nothing.
    pub(super) fn give_back(&self) {
        self.answers.store(false, Ordering::SeqCst);
        self.generation.store(0, Ordering::SeqCst);
    }

    /// From now on its writer answers signals.
    pub(super) fn answer_signals(&self) {
        self.answers.store(true, Ordering::SeqCst);
    }

    pub(super) fn answers_signals(&self) -> bool {
        self.answers.load(Ordering::SeqCst)
    }
}

/// A place for a writer of this process, one that a parent of this process has left if there is one.
pub(super) fn lease() -> &'static Place {
    let mine = fork::generation();
    let take = |place: &&Place| {
        let owner = place.generation.load(Ordering::SeqCst);
        owner != mine && place.generation.compare_exchange(owner, mine, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    };
    let place = places().find(take).unwrap_or_else(|| add(mine));
    place.answers.store(false, Ordering::SeqCst);
    place.pid.store(std::process::id(), Ordering::SeqCst);
    place
}

fn add(generation: u64) -> &'static Place {
    let place = Box::into_raw(Box::new(Place {
        doorbell: Doorbell::new(),
        generation: AtomicU64::new(generation),
        pid: AtomicU32::new(0),
        answers: AtomicBool::new(false),
        next: ptr::null_mut(),
    }));
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        // SAFETY: nobody else knows of it before the exchange.
        unsafe { (*place).next = first };
        match FIRST.compare_exchange_weak(first, place, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: places are leaked.
            Ok(_) => return unsafe { &*place },
            Err(now) => first = now,
        }
    }
}

fn places() -> impl Iterator<Item = &'static Place> {
    // SAFETY: places are leaked, and their links do not change.
    let mut next = unsafe { FIRST.load(Ordering::Acquire).as_ref() };
    std::iter::from_fn(move || {
        let place = next?;
        // SAFETY: as above.
        next = unsafe { place.next.as_ref() };
        Some(place)
    })
}

/// The places whose writers answer signals of this process.
fn answering() -> impl Iterator<Item = &'static Place> {
    let (generation, pid) = (fork::generation(), std::process::id());
    places().filter(move |place| {
        place.answers_signals()
            && place.generation.load(Ordering::SeqCst) == generation
            && place.pid.load(Ordering::SeqCst) == pid
    })
}

/// Returns whether a writer answers signals of this process.
pub(super) fn is_anyone_answering() -> bool {
    answering().next().is_some()
}

/// Rings for all writers that answer signals of this process.
pub(super) fn ring_answering() {
    answering().for_each(|place| place.doorbell.ring());
}
