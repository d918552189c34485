//! The tests of ledgers, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers, and estimates")]

mod live_heap;
mod model;
mod without_memory;
