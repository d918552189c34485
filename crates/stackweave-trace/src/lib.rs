//! The trace recorder: every Python call, in a recording.
//!
//! The interpreter tells of calls (`stackweave_cpython::calls`); each thread has a shadow stack of what is open on it, which
//! is compared with the real one at each event: one comparison, if nothing strange has happened. So what is recorded nests
//! exactly, whatever happens: greenlets, `longjmp`, a start in the middle of calls, events that an interpreter leaves out.
//!
//! | file | holds | |
//! |---|---|---|
//! | `observer.rs` | what happens most | hot |
//! | `shadow.rs`, `entry.rs` | the stack | hot |
//! | `codes.rs` | what is done about each function | hot |
//! | `engine.rs`, `thread.rs` | what an event does, in all cases | |
//! | `session.rs`, `blocks.rs` | what threads share, and what each has | |
//! | `trace.rs`, `spans.rs` | what programs call | |

#![allow(clippy::inline_always, reason = "an event is a few nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that trace are 64-bit: an address, a word and a usize are one size"
)]

mod blocks;
mod codes;
mod describer;
mod ending;
mod engine;
#[cfg(test)]
mod engine_tests;
mod entry;
mod error;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod hot_tests;
mod kinds;
#[cfg(test)]
mod model_tests;
mod observer;
mod options;
mod rules;
mod session;
mod shadow;
mod sink;
mod snapshot;
mod spans;
mod stats;
mod thread;
mod trace;

pub use describer::{DescribedCall, Describer, Description};
pub use error::TraceError;
pub use options::{Demotion, DescribedFunctions, TraceOptions};
pub use spans::{begin_span, end_collection, end_span, is_tracing, start_collection, write_open};
pub use stats::{DemotedFunction, TraceStats};
pub use trace::{Trace, mark_waiting};
