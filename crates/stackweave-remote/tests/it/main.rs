//! The tests of other processes' stacks, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::print_stdout, reason = "a test reports what it skips and what it measured")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot set up must fail it")]

mod native;
mod program;
mod python_frames;
mod python_interpreters;
mod python_running;
mod python_thread_names;
mod self_report;
mod side_effects;
mod target;
