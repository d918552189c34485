//! The kernel's futexes. A wait has no limit of time: who is not woken waits for ever, and loom tells.

use std::time::Duration;

use loom::sync::{Condvar, Mutex};

use crate::atomic::{AtomicU32, Ordering};

loom::lazy_static! {
    static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Waits until it is woken, unless the word is not `expected`. May be woken for another word.
pub(crate) fn wait(word: &AtomicU32, expected: u32, _most: Duration) {
    let guard = SLEEPERS.0.lock().unwrap();
    // As in `build.rs`: it must see the last value.
    if word.fetch_add(0, Ordering::SeqCst) == expected {
        drop(SLEEPERS.1.wait(guard));
    }
}

/// Lets all that wait go on.
pub(crate) fn wake_all(_word: &AtomicU32) {
    drop(SLEEPERS.0.lock());
    SLEEPERS.1.notify_all();
}
