//! How a recording is exported.

use stackweave_profile::{AggregateOptions, View};
use stackweave_recording::Recording;

/// What goes into an export, and how it looks. The default is what people expect of each format.
#[derive(Debug, Default)]
pub struct ExportOptions<'a> {
    /// Which part: threads, time, what is counted. Its grouping is the format's own.
    pub part: AggregateOptions,
    /// Which frames. If it is not said, pictures hide what is internal to interpreters and libraries, and all else is whole.
    pub view: Option<View>,
    /// What it is called, where a format has room for that: the command line if it is not said.
    pub title: Option<String>,
    /// Whether a flame graph shows what happened in its order, and does not merge what is equal.
    pub time_order: bool,
    /// The recording before a change: a flame graph then shows what became more and what less.
    pub before: Option<&'a Recording>,
    /// Whether a file that is there already is replaced.
    pub overwrite: bool,
}
