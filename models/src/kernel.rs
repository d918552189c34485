//! The kernel's futexes. A wait has no timeout: loom reports a thread that is never woken.

use std::time::Duration;

use loom::sync::{Condvar, Mutex};

use crate::atomic::{AtomicU32, Ordering};

loom::lazy_static! {
    static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Waits until it is woken, unless the word differs from `expected`. May be woken for a different word.
pub(crate) fn wait(word: &AtomicU32, expected: u32, _most: Duration) {
    let guard = SLEEPERS.0.lock().unwrap();
    // As in `build.rs`: this must see the last value.
    if word.fetch_add(0, Ordering::SeqCst) == expected {
        drop(SLEEPERS.1.wait(guard));
    }
}

/// Wakes all waiting threads.
pub(crate) fn wake_all(_word: &AtomicU32) {
    drop(SLEEPERS.0.lock());
    SLEEPERS.1.notify_all();
}
