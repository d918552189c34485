//! The timing recorder: phases that a program records explicitly.
//!
//! It is for programs whose functions are not calls of an interpreter: a compiler that traces code, a query planner, a build
//! tool. They record when a phase begins and ends; phases nest on each thread.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::sync::Arc;
//! # use stackweave_core::NoNames;
//! # let names = Arc::new(NoNames);
//! # let folder = std::env::temp_dir().join(format!("stackweave-timing-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("plan.swv");
//! use stackweave_recording::timing::{Outcome, Timing};
//! use stackweave_recording::{RecorderOptions, Recorder, Recording};
//! use stackweave_store::{StackTable, label};
//!
//! static STACKS: StackTable = StackTable::new();
//!
//! let mut options = RecorderOptions::new(&path);
//! options.extra.insert("timing".to_owned(), "1".to_owned());
//! let timing = Timing::new(Recorder::start(options, &STACKS, names)?).ok_or("too many kinds of events")?;
//!
//! let query = label("plan", "queries.sql", 3).ok_or("no memory")?;
//! let scan = label("choose a scan", "", 0).ok_or("no memory")?;
//! let run = timing.push_run(query, br#"{"query": 17}"#);
//! timing.push(scan);
//! timing.pop();
//! timing.push(scan); // It is never popped, so it ends with the enclosing phase, and is counted.
//! timing.close(run, Outcome::Failed, br#"{"error": "no such table"}"#);
//!
//! assert_eq!(timing.anomalies().left_open, 1);
//! timing.recorder().stop();
//! assert_eq!(Recording::open(&path)?.event_count(), 6);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! Phases are begin and end events of the recording, so every reader and export supports them. Statistics are computed when a
//! recording is read; the recorder keeps only what is open.

mod anomalies;
mod engine;
mod event_time;
mod explicit_time;
mod open_phases;
mod recorder;
mod registered_kinds;
mod token;

pub use anomalies::AnomalyCounts;
pub use explicit_time::TimingAt;
pub use recorder::Timing;
pub use token::{Outcome, Token};
