//! Tests of the `CPython` readers inside real interpreters, as one program.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot be set up must fail")]
#![allow(clippy::print_stdout, reason = "tests print what they skip and measure")]

mod allocators;
mod calls;
mod embedding;
mod frames;
mod line_tables;
