//! Whether a pickle was made by this very process: stack ids mean something only there.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// A number that no other process has, also not the parent or a forked child. Called with the GIL held.
pub(crate) fn token() -> u64 {
    static TOKEN: Mutex<Option<(u32, u64)>> = Mutex::new(None);
    let mut token = TOKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    match *token {
        Some((owner, number)) if owner == process => number,
        _ => {
            // A forked child has its parent's state of the random keys, but not its number.
            let number = RandomState::new().hash_one((process, SystemTime::now()));
            *token = Some((process, number));
            number
        }
    }
}
