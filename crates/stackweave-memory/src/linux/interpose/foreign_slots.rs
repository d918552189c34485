//! Counts the slots of allocation functions that another tool holds: it calls the allocator without our hooks.
//!
//! Another profiler may write into slots before our hooks are installed, meanwhile, and over them. Allocations through
//! such a slot are not recorded, so the recording has to state it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::platform::interpose::ForeignSlots;
use crate::platform::interpose::definitions::module_path;
use crate::platform::interpose::module_table::ModuleVisit;
use crate::platform::interpose::refresh::LOADER;

/// The time that [`foreign_module`] tries to get the loader's locks.
const LONGEST_WALK: Duration = Duration::from_millis(100);

// One thread at a time writes these: the one that holds the walk lock.
static SLOTS: AtomicU64 = AtomicU64::new(0);
static FOREIGN_SLOTS: AtomicU64 = AtomicU64::new(0);
static FOREIGN_FUNCTION: AtomicU64 = AtomicU64::new(0);

/// Keeps the counts of this walk if the foreign share is the largest since [`reset_foreign_slots`]. Allocates nothing,
/// because hooks walk, too.
///
/// `overwritten` slots hold something else than at the previous walk. The tool that did that may have released them
/// since.
pub(super) fn note(visits: &[ModuleVisit], overwritten: u64) {
    let sum = |of: fn(&ModuleVisit) -> u32| visits.iter().map(|visit| u64::from(of(visit))).sum::<u64>();
    let foreign = sum(|visit| visit.foreign_block_slots);
    let slots = foreign + sum(|visit| visit.block_slots);
    let foreign = foreign.max(overwritten.min(slots));
    let before = foreign_slots();
    if foreign * before.slots.max(1) >= before.foreign * slots.max(1) {
        SLOTS.store(slots, Ordering::Relaxed);
        FOREIGN_SLOTS.store(foreign, Ordering::Relaxed);
        let is_larger = foreign * before.slots.max(1) > before.foreign * slots.max(1);
        match visits.iter().map(|visit| visit.foreign_function).find(|function| *function != 0) {
            Some(function) => FOREIGN_FUNCTION.store(function, Ordering::Relaxed),
            None if is_larger => FOREIGN_FUNCTION.store(0, Ordering::Relaxed),
            None => {}
        }
    }
}

/// Resets the counts. The next walk counts again.
pub(crate) fn reset_foreign_slots() {
    for count in [&SLOTS, &FOREIGN_SLOTS, &FOREIGN_FUNCTION] {
        count.store(0, Ordering::Relaxed);
    }
}

/// Returns the counts of the moment when another tool held the largest share. They stay when the hooks are removed.
pub(crate) fn foreign_slots() -> ForeignSlots {
    ForeignSlots { slots: SLOTS.load(Ordering::Relaxed), foreign: FOREIGN_SLOTS.load(Ordering::Relaxed) }
}

/// Returns the path of the module whose function is in foreign slots. `None` if there is none, if it was unloaded, or
/// if the loader is busy for longer than a walk takes: the thread that removes the hooks walks while the writer writes
/// its last block.
pub(crate) fn foreign_module() -> Option<String> {
    let function = FOREIGN_FUNCTION.load(Ordering::Relaxed);
    if function == 0 {
        return None;
    }
    let loader = LOADER.get()?;
    let deadline = Instant::now() + LONGEST_WALK;
    loop {
        // With its locks held the loader answers at once: this call does not wait.
        if let Some(_guard) = loader.try_enter() {
            return module_path(function);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
}
