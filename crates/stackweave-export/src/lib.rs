//! Exports recordings to the formats of common viewers.
//!
//! Each format is one file or folder in `formats`, which reads a [`Source`] and writes. [`export`] selects it. An
//! output file appears under its name only when it is complete.
#![forbid(unsafe_code)]

mod activity;
mod budget;
mod call_graph;
mod error;
mod export;
mod external_graph;
mod format;
mod formats;
mod included_sources;
mod layout;
mod marshal;
mod marshal_reader;
mod memory_curve;
mod options;
mod output;
#[allow(dead_code, reason = "each format uses a part of it")]
mod protobuf;
mod pstats_table;
mod size_limit;
mod source;
mod spilled_columns;
mod svg;
mod visible_frames;
mod visible_stacks;

pub use error::{ExportError, TooLarge};
pub use export::{Exported, export, write};
pub use external_graph::{ExternalCalls, ExternalFunction, ExternalGraph};
pub use format::{Format, UnknownFormat};
pub use formats::is_report;
pub use included_sources::IncludedSources;
pub use options::{ExportOptions, SourceText};
pub use size_limit::{InvalidSize, SizeLimit, parse_bytes};
pub use source::Source;
