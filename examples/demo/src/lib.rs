//! The parts of the demo: a stack that crosses languages, and a stopwatch.

mod sort;
mod stopwatch;

pub use sort::sort_through_c;
pub use stopwatch::{Cost, interleaved_costs};

/// The examples of the README, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
