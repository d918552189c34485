//! How many slots of functions that allocate another tool holds: it calls the allocator without our hooks.
//!
//! Another profiler may write into slots before our hooks are installed, while they are, and over them. What is allocated through such a
//! slot is not recorded, so the recording has to state it.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::platform::interpose::definitions::module_path;
use crate::platform::interpose::refresh::LOADER;
use crate::platform::interpose::visited::Visit;
use crate::platform::interpose::{Others, loader::Loader};

// Written by one thread at a time, which has the turn to walk.
static SLOTS: AtomicU64 = AtomicU64::new(0);
static FOREIGN_SLOTS: AtomicU64 = AtomicU64::new(0);
static FOREIGN_FUNCTION: AtomicU64 = AtomicU64::new(0);

/// Keeps the counts of this walk if the foreign share is the largest since [`forget_others`]. Allocates nothing: hooks walk, too.
///
/// `overwritten` slots held something else than at the walk before. Who did that may have given them up since.
pub(super) fn note(visits: &[Visit], overwritten: u64) {
    let sum = |of: fn(&Visit) -> u32| visits.iter().map(|visit| u64::from(of(visit))).sum::<u64>();
    let foreign = sum(|visit| visit.foreign_block_slots);
    let slots = foreign + sum(|visit| visit.block_slots);
    let foreign = foreign.max(overwritten.min(slots));
    let before = others();
    if foreign * before.slots.max(1) >= before.foreign_slots * slots.max(1) {
        SLOTS.store(slots, Ordering::Relaxed);
        FOREIGN_SLOTS.store(foreign, Ordering::Relaxed);
        let function = visits.iter().map(|visit| visit.foreign_function).find(|function| *function != 0);
        FOREIGN_FUNCTION.store(function.unwrap_or(0), Ordering::Relaxed);
    }
}

/// Forgets what was counted. The next walk counts again.
pub(crate) fn forget_others() {
    for count in [&SLOTS, &FOREIGN_SLOTS, &FOREIGN_FUNCTION] {
        count.store(0, Ordering::Relaxed);
    }
}

/// Returns the counts of the moment when another tool held the largest share. They stay when the hooks are removed.
pub(crate) fn others() -> Others {
    Others { slots: SLOTS.load(Ordering::Relaxed), foreign_slots: FOREIGN_SLOTS.load(Ordering::Relaxed) }
}

/// Returns the path of the module whose function is in foreign slots. `None` if there is none, if it is gone, or if the loader is busy.
pub(crate) fn foreign_module() -> Option<String> {
    let function = FOREIGN_FUNCTION.load(Ordering::Relaxed);
    // With its locks the loader answers at once: nobody waits for it here.
    let _inside = LOADER.get().and_then(Loader::try_enter)?;
    (function != 0).then(|| module_path(function)).flatten()
}
