//! Tests the records of hooks that are called as modules call them.
#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

mod block_functions;
mod host;
mod hot;
mod mapping_functions;
mod new_functions;
pub(crate) mod recorded;
mod sampling;
mod sessions;
mod signals;
mod threads;
