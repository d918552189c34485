//! Recordings in the formats of the viewers that people already use.
//!
//! Each format is one file in `formats`, which gets a [`Source`] and writes. [`export`] chooses it. The file gets its
//! name when it is complete.
#![forbid(unsafe_code)]

mod activity;
mod budget;
mod call_graph;
mod error;
mod export;
mod format;
mod formats;
mod given_graph;
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
mod sampling;
mod size_limit;
mod source;
mod spill;
mod svg;
mod visible_frames;

pub use error::{ExportError, TooLarge};
pub use export::{Exported, export, write};
pub use format::{Format, UnknownFormat};
pub use formats::is_report;
pub use given_graph::{CalledFunction, Calls, GivenGraph};
pub use included_sources::IncludedSources;
pub use options::{ExportOptions, SourceText};
pub use size_limit::{NoSize, SizeLimit};
pub use source::Source;
