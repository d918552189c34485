//! Hooks that stay in their slots from one recorder to the next.
//!
//! Writing all slots of a large program takes milliseconds, and so does restoring them: too long for a recorder around
//! each of thousands of tests. A hook that records nothing costs a few instructions.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::platform::interpose::HookFunction;
use crate::platform::interpose::refresh::restore_slots;

/// The number of guards that keep hooks.
static WANTED: AtomicUsize = AtomicUsize::new(0);
/// The first of the functions whose hooks were left in their slots, and their number; null: there are none.
static FIRST: AtomicPtr<HookFunction> = AtomicPtr::new(ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// While one of these lives, the hooks of a recorder that ends stay in place, so that the next one starts at once.
#[derive(Debug)]
pub struct KeptHooks(());

impl KeptHooks {
    /// Creates a guard.
    pub fn begin() -> Self {
        WANTED.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for KeptHooks {
    fn drop(&mut self) {
        let is_last = WANTED.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && !FIRST.swap(ptr::null_mut(), Ordering::SeqCst).is_null() {
            restore_slots();
        }
    }
}

/// Leaves the hooks of these functions in their slots, if a guard wants that. Only one recorder at a time calls this.
pub(super) fn keep(functions: &'static [HookFunction]) -> bool {
    let is_wanted = WANTED.load(Ordering::SeqCst) != 0;
    if is_wanted {
        COUNT.store(functions.len(), Ordering::SeqCst);
        FIRST.store(functions.as_ptr().cast_mut(), Ordering::SeqCst);
    }
    is_wanted
}

/// The functions whose hooks were left in their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptFunctions {
    None,
    /// The functions that the caller passed.
    Same,
    /// Other functions.
    Different,
}

/// Takes over the hooks that were left in their slots. The caller is responsible for them from then on.
pub(super) fn take(functions: &'static [HookFunction]) -> KeptFunctions {
    let first = FIRST.swap(ptr::null_mut(), Ordering::SeqCst);
    if first.is_null() {
        return KeptFunctions::None;
    }
    let are_same = ptr::eq(first, functions.as_ptr()) && COUNT.load(Ordering::SeqCst) == functions.len();
    if are_same { KeptFunctions::Same } else { KeptFunctions::Different }
}
