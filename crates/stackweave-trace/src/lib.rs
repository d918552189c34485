//! The trace recorder: every Python call, in a recording.
//!
//! The interpreter reports calls to hooks (`stackweave_cpython::calls`). Each thread has a shadow stack of its open
//! calls, which is compared with the real stack at each event: one comparison in the ordinary case. So recorded calls
//! nest exactly, whatever happens: greenlets, `longjmp`, a start in the middle of calls, events that an interpreter
//! omits.
//!
//! | file | content | |
//! |---|---|---|
//! | `observer.rs` | the common events | hot |
//! | `shadow.rs`, `shadow_entry.rs` | the shadow stack | hot |
//! | `code_states.rs` | what is done with the calls of each function | hot |
//! | `engine.rs`, `thread_stack.rs` | all events | |
//! | `session.rs`, `traced_threads.rs` | the state that threads share, and that of each thread | |
//! | `trace.rs`, `spans.rs` | the interface | |

#![allow(clippy::inline_always, reason = "an event is a few nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that trace are 64-bit: an address, a word and a usize are one size"
)]

mod chunk_start;
mod code_states;
mod describer;
mod end_threads;
mod engine;
#[cfg(test)]
mod engine_tests;
mod error;
#[cfg(test)]
mod fake_thread;
#[cfg(test)]
mod hot_tests;
mod kinds;
mod limits;
#[cfg(test)]
mod model_tests;
mod observer;
mod options;
mod session;
mod shadow;
mod shadow_entry;
mod sink;
mod spans;
mod stats;
mod thread_stack;
mod trace;
mod traced_threads;

pub use describer::{DescribedCall, Describer, Description};
pub use error::TraceError;
pub use options::{Demotion, DescribedFunctions, TraceOptions};
pub use spans::{begin_span, end_collection, end_span, is_tracing, start_collection, write_open};
pub use stats::{DemotedFunction, TraceStats};
pub use trace::{Trace, mark_waiting};
