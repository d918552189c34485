//! The timing recorder: phases that a program tells of, in a recording.
//!
//! For programs that have a notion of functions which are no calls of an interpreter: a compiler that traces code, a planner
//! of queries, a tool that builds. They say when a phase begins and ends; phases nest on each thread.
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
//! use stackweave_recording::{Options, Recorder, Recording};
//! use stackweave_store::{StackTable, label};
//!
//! static STACKS: StackTable = StackTable::new();
//!
//! let mut options = Options::new(&path);
//! options.extra.insert("timing".to_owned(), "1".to_owned());
//! let timing = Timing::new(Recorder::start(options, &STACKS, names)?).ok_or("too many kinds of events")?;
//!
//! let query = label("plan", "queries.sql", 3).ok_or("no memory")?;
//! let scan = label("choose a scan", "", 0).ok_or("no memory")?;
//! let run = timing.push_run(query, br#"{"query": 17}"#);
//! timing.push(scan);
//! timing.pop();
//! timing.push(scan); // Nobody ends it: it ends with what is around it, and is counted.
//! timing.close(run, Outcome::Failed, br#"{"error": "no such table"}"#);
//!
//! assert_eq!(timing.oddities().left_open, 1);
//! timing.recorder().stop();
//! assert_eq!(Recording::open(&path)?.event_count(), 6);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! What is begun here are begins and ends of the recording like any others, so every reader and export knows them. Statistics
//! are made of them when they are read; here nothing is kept but what is open.

mod at;
mod engine;
mod kinds;
mod oddities;
mod open;
mod recorder;
mod token;
mod when;

pub use at::TimingAt;
pub use oddities::Oddities;
pub use recorder::Timing;
pub use token::{Outcome, Token};
