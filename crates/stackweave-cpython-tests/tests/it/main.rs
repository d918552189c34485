//! The tests of the `CPython` readers inside real interpreters, as one program.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(clippy::print_stdout, reason = "a test says what it skips and what it measured")]

mod allocators;
mod calls;
mod embedding;
mod frames;
mod line_tables;
