//! The tests of the unwinder, as one program. Tests that hold the loader's lock, unload libraries or fork from a
//! process with threads are separate programs, because they affect the whole process.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(clippy::print_stdout, reason = "a test reports what it skips and what it measured")]

mod agreement;
mod contract;
mod corruption;
mod generated_code;
mod marks;
mod openblas;
mod outside;
mod replay;
mod signals;
mod single_step;
