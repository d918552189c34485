//! The formats, one file or folder each.

mod allocations;
mod callgraph;
mod chrome;
mod dot;
mod firefox;
mod flamegraph;
mod folded;
mod json;
mod memory_curve;
mod parquet;
mod perfetto;
mod pprof;
mod pstats;
mod pytorch;
mod report;
mod speedscope;

use std::io::Write;

use crate::error::ExportError;
use crate::format::Format;
use crate::source::Source;

pub(crate) use callgraph::to_svg as call_graph_svg;
pub(crate) use parquet::write as write_parquet;
pub use report::is_report;

/// Writes a recording in a format that is a single file.
pub(crate) fn write(source: &Source<'_>, format: Format, out: &mut dyn Write) -> Result<(), ExportError> {
    match format {
        Format::Allocations => allocations::write(source, out),
        Format::Callgraph => callgraph::write(source, out),
        Format::Chrome => chrome::write(source, out),
        Format::Dot => dot::write(source, out),
        Format::Firefox => firefox::write(source, out),
        Format::Flamegraph => flamegraph::write(source, out),
        Format::Folded => folded::write(source, out),
        Format::Pprof => pprof::write(source, out),
        Format::Speedscope => speedscope::write(source, out),
        Format::Json => json::write(source, out),
        Format::Pstats => pstats::write(source, out),
        Format::MemoryCurve => memory_curve::write(source, out),
        Format::Pytorch => pytorch::write(source, out),
        Format::Perfetto => perfetto::write(source, out),
        Format::Report => report::write(source, out),
        Format::Parquet => Err(ExportError::Unsupported("parquet is a folder of files, not a single file".to_owned())),
    }
}
