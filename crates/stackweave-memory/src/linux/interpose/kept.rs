//! Hooks that stay in their slots from one recorder to the next.
//!
//! To write all slots of a large program takes milliseconds, and so does to put them back: too much for a recorder around each of
//! thousands of tests. A hook that records nothing costs a few instructions.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::platform::interpose::Function;
use crate::platform::interpose::refresh::put_back;

/// How many want hooks to stay.
static WANTED: AtomicUsize = AtomicUsize::new(0);
/// The first of the functions whose hooks were left in their slots, and how many there are; null: there are none.
static FIRST: AtomicPtr<Function> = AtomicPtr::new(ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// While one of these lives, the hooks of a recorder that ends stay where they are, so that the next one begins at once.
#[derive(Debug)]
pub struct KeptHooks(());

impl KeptHooks {
    /// Creates one.
    pub fn begin() -> Self {
        WANTED.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for KeptHooks {
    fn drop(&mut self) {
        let is_last = WANTED.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && !FIRST.swap(ptr::null_mut(), Ordering::SeqCst).is_null() {
            put_back();
        }
    }
}

/// Leaves the hooks of these functions in their slots, if somebody wants that. One recorder at a time is there to call it.
pub(super) fn keep(functions: &'static [Function]) -> bool {
    let is_wanted = WANTED.load(Ordering::SeqCst) != 0;
    if is_wanted {
        COUNT.store(functions.len(), Ordering::SeqCst);
        FIRST.store(functions.as_ptr().cast_mut(), Ordering::SeqCst);
    }
    is_wanted
}

/// Whose hooks were left in their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    None,
    /// Those of the functions that were asked for.
    These,
    Others,
}

/// Takes over the hooks that were left in their slots. From then on they are the caller's.
pub(super) fn take(functions: &'static [Function]) -> Kept {
    let first = FIRST.swap(ptr::null_mut(), Ordering::SeqCst);
    if first.is_null() {
        return Kept::None;
    }
    let are_these = ptr::eq(first, functions.as_ptr()) && COUNT.load(Ordering::SeqCst) == functions.len();
    if are_these { Kept::These } else { Kept::Others }
}
