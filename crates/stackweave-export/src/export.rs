//! From a recording to a file in a format.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use stackweave_profile::View;
use stackweave_recording::Recording;
use stackweave_symbolize::Symbolizer;

use crate::error::ExportError;
use crate::format::Format;
use crate::formats;
use crate::options::ExportOptions;
use crate::output::{write_file, write_folder};
use crate::source::Source;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// How many bytes.
    pub bytes: u64,
    /// What could not be read of the recording, a sentence each.
    pub missing: Vec<String>,
}

/// Writes a recording in a format. Native frames that have no names in it are resolved by `symbolizer`.
///
/// What is there already stays until the new file is complete. `progress` is told how many of [`Recording::bytes`] are
/// done; a format that reads twice begins anew.
pub fn export(
    recording: &Recording,
    format: Format,
    path: &Path,
    options: &ExportOptions<'_>,
    with: (Option<&Symbolizer>, &mut dyn FnMut(u64)),
) -> Result<Exported, ExportError> {
    let (symbolizer, progress) = with;
    let source = Source::new(recording, symbolizer, options, default_view(format), progress);
    let bytes = if format == Format::Parquet {
        write_folder(path, options.overwrite, |folder| formats::write_parquet(&source, folder))?
    } else {
        write_file(path, options.overwrite, |out| {
            if !is_to_be_compressed(format, path) {
                return formats::write(&source, format, out);
            }
            let mut out = GzEncoder::new(out, Compression::fast());
            formats::write(&source, format, &mut out)?;
            Ok(out.finish().map(drop)?)
        })?
    };
    Ok(Exported { bytes, missing: source.report() })
}

/// Writes a recording in a format, but for Parquet, which is no single file, to wherever it shall go.
pub fn write(
    recording: &Recording,
    format: Format,
    out: &mut dyn Write,
    options: &ExportOptions<'_>,
    with: (Option<&Symbolizer>, &mut dyn FnMut(u64)),
) -> Result<Vec<String>, ExportError> {
    let (symbolizer, progress) = with;
    let source = Source::new(recording, symbolizer, options, default_view(format), progress);
    formats::write(&source, format, out)?;
    Ok(source.report())
}

fn default_view(format: Format) -> View {
    View { show_all: !is_picture(format), ..View::default() }
}

/// Whether the name of the file says so. pprof's files are compressed by themselves.
fn is_to_be_compressed(format: Format, path: &Path) -> bool {
    format != Format::Pprof && path.extension().is_some_and(|extension| extension == "gz")
}

/// Whether a person looks at it as it is, and has no viewer that can hide frames.
fn is_picture(format: Format) -> bool {
    matches!(format, Format::Flamegraph | Format::Callgraph | Format::Dot | Format::MemoryCurve)
}
