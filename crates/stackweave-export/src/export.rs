//! Exports a recording to a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use stackweave_profile::View;
use stackweave_recording::Recording;
use stackweave_symbolize::Symbolizer;

use crate::budget::{Budget, LimitExceeded};
use crate::error::{ExportError, TooLarge};
use crate::format::Format;
use crate::formats;
use crate::included_sources::IncludedSources;
use crate::options::ExportOptions;
use crate::output::{write_file, write_folder};
use crate::source::Source;

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The size in bytes.
    pub bytes: u64,
    /// The parts of the recording that could not be read, one sentence each.
    pub missing: Vec<String>,
    /// The data that the format left out, and how to include them, one sentence each.
    pub remarks: Vec<String>,
    /// The source files whose texts the export contains.
    pub sources: IncludedSources,
}

/// Exports a recording. Native frames without recorded names are resolved by `symbolizer`.
///
/// An existing file stays unchanged until the export is complete, and if it fails. A device, a FIFO or a socket is
/// written to directly. A folder is replaced only if it is an older export with nothing else in it. `progress` is
/// called with how many of [`Recording::bytes`] have been read; a format that reads twice starts again at 0. Nothing is
/// written beyond [`ExportOptions::max_size`], or if the disk would get too full.
pub fn export(
    recording: &Recording,
    format: Format,
    path: &Path,
    options: &ExportOptions<'_>,
    with: (Option<&Symbolizer>, &mut dyn FnMut(u64)),
) -> Result<Exported, ExportError> {
    let (symbolizer, progress) = with;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let budget = Budget::new(options.max_size.bytes(format), Some(folder));
    let source = Source::new(recording, symbolizer, options, default_view(format), (progress, budget));
    let inputs = inputs_of(recording, options);
    let replacing = (options.overwrite, inputs.as_slice());
    let bytes = if format == Format::Parquet {
        write_folder(path, replacing, |folder| formats::write_parquet(&source, folder))
    } else {
        write_file(path, replacing, |out| write_to(&source, format, is_compressed(format, path), out))
    };
    let bytes = bytes.map_err(|error| explained(error, format, source.share()))?;
    Ok(Exported { bytes, missing: source.report(), remarks: source.take_remarks(), sources: source.sources() })
}

/// Writes a recording in a format that is a single file, which Parquet is not.
pub fn write(
    recording: &Recording,
    format: Format,
    out: &mut dyn Write,
    options: &ExportOptions<'_>,
    with: (Option<&Symbolizer>, &mut dyn FnMut(u64)),
) -> Result<Vec<String>, ExportError> {
    let (symbolizer, progress) = with;
    let budget = Budget::new(options.max_size.bytes(format), None);
    let source = Source::new(recording, symbolizer, options, default_view(format), (progress, budget));
    write_to(&source, format, format == Format::Pprof, out)
        .map_err(|error| explained(error, format, source.share()))?;
    Ok(source.report())
}

/// Writes within the budget, which counts bytes before they are compressed, as readers have to handle them.
fn write_to(source: &Source<'_>, format: Format, is_compressed: bool, out: &mut dyn Write) -> Result<(), ExportError> {
    if !is_compressed {
        return formats::write(source, format, &mut source.budget().writer(out));
    }
    let level = if format == Format::Pprof { Compression::default() } else { Compression::fast() };
    let mut out = source.budget().writer(GzEncoder::new(out, level));
    formats::write(source, format, &mut out)?;
    Ok(out.into_inner().finish().map(drop)?)
}

fn explained(error: ExportError, format: Format, share: Option<f64>) -> ExportError {
    let ExportError::Write(_, inner) = &error else { return error };
    let passed = inner.get_ref().and_then(|inner| inner.downcast_ref::<LimitExceeded>()).copied();
    passed.map_or(error, |LimitExceeded { limit }| ExportError::TooLarge(TooLarge { format, limit, share }))
}

fn inputs_of(recording: &Recording, options: &ExportOptions<'_>) -> Vec<PathBuf> {
    let all = [Some(recording), options.before].into_iter().flatten();
    all.flat_map(Recording::processes).map(|process| process.path().to_owned()).collect()
}

fn default_view(format: Format) -> View {
    // A table with whole stacks would be larger than its readers open.
    View { show_all: !is_picture(format) && format != Format::Allocations, ..View::default() }
}

/// Returns whether the file is compressed: pprof's files always are, others by their suffix.
fn is_compressed(format: Format, path: &Path) -> bool {
    format == Format::Pprof || path.extension().is_some_and(|extension| extension == "gz")
}

/// Returns whether the format is a picture, whose viewer can't hide frames.
fn is_picture(format: Format) -> bool {
    matches!(format, Format::Flamegraph | Format::Callgraph | Format::Dot | Format::MemoryCurve)
}
