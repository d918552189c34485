//! Native addresses to names, lines and inlined calls, in process.
#![forbid(unsafe_code)]

mod options;
mod resolved;
mod symbolizer;

pub use options::{MODE_VARIABLE, Mode, Options, UnknownMode};
pub use resolved::{Frame, Reason, Resolved, Source, Symbolized};
pub use symbolizer::{Stats, Symbolizer};
