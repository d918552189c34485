//! Whether a pickle was made by this very process: stack ids mean something only there.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::time::SystemTime;

use stackweave_store::PerProcess;

/// A number that no other process has, also not the parent or a forked child.
pub(crate) fn token() -> u64 {
    static TOKEN: PerProcess<u64> = PerProcess::new();
    // A forked child has its parent's state of the random keys, but not its number.
    let make = |process| Ok::<u64, Infallible>(RandomState::new().hash_one((process, SystemTime::now())));
    let Ok(token) = TOKEN.get_or_try_make(make);
    *token
}
