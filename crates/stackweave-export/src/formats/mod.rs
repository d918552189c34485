//! The formats, a file each.

mod chrome;
mod folded;
mod json;
mod pprof;
mod pstats;
mod speedscope;
mod perfetto;

use std::io::Write;
use std::path::Path;

use crate::error::ExportError;
use crate::format::Format;
use crate::source::Source;

/// Writes a recording in a format that is one file.
pub(crate) fn write(source: &Source<'_>, format: Format, out: &mut dyn Write) -> Result<(), ExportError> {
    match format {
        Format::Chrome => chrome::write(source, out),
        Format::Folded => folded::write(source, out),
        Format::Pprof => pprof::write(source, out),
        Format::Speedscope => speedscope::write(source, out),
        Format::Json => json::write(source, out),
        Format::Pstats => pstats::write(source, out),
        Format::Perfetto => perfetto::write(source, out),
        _ => Err(ExportError::NotThis(format!("{format} is not there yet"))),
    }
}

/// Fills a folder with Parquet files, and says how many bytes they have.
pub(crate) fn write_parquet(_source: &Source<'_>, _folder: &Path) -> Result<u64, ExportError> {
    Err(ExportError::NotThis("parquet is not there yet".to_owned()))
}
