//! The tests of the commands, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(unreachable_pub, reason = "the modules are those of one program")]

mod command;
mod common;
mod errors;
mod hidden;
mod machines;
mod outputs;
mod passes;
mod phases;
mod report;
mod terminal;
mod text;
mod untrusted;
mod wild_recordings;
