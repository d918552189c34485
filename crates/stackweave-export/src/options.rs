//! How a recording is exported.

use stackweave_profile::{AggregateOptions, View};
use stackweave_recording::Recording;

use crate::size_limit::SizeLimit;

/// A source that is in no file, as a cell of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// What frames say their file is.
    pub file: String,
    /// What people call it.
    pub name: String,
    /// The source itself.
    pub text: String,
}

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
    /// Whether a report has the texts of source files with it, as they can be read now. If it is not said, those of recordings
    /// that this user has made on this machine.
    pub sources: Option<bool>,
    /// Sources that are in no file, which a report has with it.
    pub texts: Vec<SourceText>,
    /// The recording before a change: a report and a flame graph then show what became more and what less.
    pub before: Option<&'a Recording>,
    /// Whether a file that is there already is replaced.
    pub overwrite: bool,
    /// How large the export may become.
    pub max_size: SizeLimit,
}
