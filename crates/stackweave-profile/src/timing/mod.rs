//! The phases of recordings: how long each took, how it ended, and one row for each run.
//!
//! Calls and times are those of a [`Profile`](crate::Profile), as for every recording. The events that only a timing
//! recorder writes are read separately, by the same rules: phases that failed or were left open, the bytecode of
//! functions, and runs with their attributes.

mod anomalies;
mod attributes;
mod open_run;
mod phase_facts;
mod read_phases;
mod report;
mod runs;

pub use anomalies::{PhaseAnomalies, UnmatchedPop};
pub use report::{CallerRow, PhaseRow, TimingReader, TimingReport, read_timing};
pub use runs::{RunPhase, RunRow};
