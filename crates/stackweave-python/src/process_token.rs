//! Identifies pickles that were created in this process, because stack ids are valid only there.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::time::SystemTime;

use stackweave_store::PerProcess;

/// Returns a number that no other process has, including the parent and forked children.
pub(crate) fn token() -> u64 {
    static TOKEN: PerProcess<u64> = PerProcess::new();
    // A forked child inherits the random keys of its parent, but has another process id.
    let make = |process| Ok::<u64, Infallible>(RandomState::new().hash_one((process, SystemTime::now())));
    let Ok(token) = TOKEN.get_or_try_make(make);
    *token
}
