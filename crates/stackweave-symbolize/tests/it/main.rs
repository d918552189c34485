//! The tests of the symbolizer, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(clippy::print_stdout, reason = "a test reports what it skips and what it measured")]
#![allow(unreachable_pub, reason = "the modules belong to one program")]

mod agreement;
mod batches;
mod common;
mod hostile;
mod modes;
mod oracle;
mod reasons;
mod sources;
