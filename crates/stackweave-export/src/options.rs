//! The options of an export.

use stackweave_profile::{AggregateOptions, View};
use stackweave_recording::Recording;

use crate::size_limit::SizeLimit;

/// A source text that is in no file, such as a cell of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The file name in frames.
    pub file: String,
    /// The name for display.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The contents and form of an export. The default suits each format.
#[derive(Debug, Default)]
pub struct ExportOptions<'a> {
    /// The selected threads, time and measure. The format sets the grouping.
    pub part: AggregateOptions,
    /// The visible frames. By default, pictures, tables of allocations and stacks of the process's memory in snapshots
    /// hide frames inside interpreters and libraries, and other formats show all.
    pub view: Option<View>,
    /// The title, in formats that have one. The default is the command line.
    pub title: Option<String>,
    /// Whether a flame graph is in the order of time, without merging equal stacks.
    pub time_order: bool,
    /// Whether a report contains the texts of source files, as they are now. By default, if this user made the
    /// recording on this machine.
    pub sources: Option<bool>,
    /// Source texts without files, for a report.
    pub texts: Vec<SourceText>,
    /// The recording before a change: a report and a flame graph then show the differences.
    pub before: Option<&'a Recording>,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// The size below which blocks that are freed are left out of a snapshot for `PyTorch`'s viewer. By default, the
    /// smallest with which the viewer can show it.
    pub min_block: Option<u64>,
    /// The maximum size of the export.
    pub max_size: SizeLimit,
}
