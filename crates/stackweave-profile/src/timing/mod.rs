//! What recordings say about phases: how long each took, how it ended, and one row for each run.
//!
//! Calls and times are those of a [`Profile`](crate::Profile), as for every recording. What only a timing recorder tells is
//! read beside it by the same rules: phases that failed or were left open, how much bytecode a function has, and runs
//! with what was said about them.

mod attributes;
mod open_run;
mod phase_facts;
mod problems;
mod report;
mod runs;
mod walk;

pub use problems::{Oddities, UnmatchedPlace};
pub use report::{CallerRow, PhaseRow, TimingReport, read_timing};
pub use runs::{RunPhase, RunRow};
