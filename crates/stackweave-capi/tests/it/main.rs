//! The tests of the C interface that run programs of their own, as one program. The other files beside this folder are programs
//! too: each registers sources, records memory or prepares dumps for the whole process.
#![allow(clippy::print_stdout, reason = "a test says what it skips and what it measured")]
#![allow(clippy::expect_used, reason = "what a test cannot set up must fail it")]

#[path = "../common/mod.rs"]
mod common;
mod headers;
mod native_host;
mod python_host;
mod python_lifetime;
